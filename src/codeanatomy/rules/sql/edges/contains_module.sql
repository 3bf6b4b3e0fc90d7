-- A file contains its module.
-- output: cpg_edges
-- kind: CONTAINS
SELECT
  concat('CONTAINS:m:', m.file_id) AS edge_id,
  concat('f:', m.file_id) AS src_id,
  concat('m:', m.file_id) AS dst_id,
  m.file_id,
  m.path
FROM py_module_index AS m
