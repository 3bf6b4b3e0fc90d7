-- A module or a definition contains the imports written directly in it.
-- output: cpg_edges
-- kind: CONTAINS
SELECT
  concat('CONTAINS:i:', x.file_id, ':', x.import_no) AS edge_id,
  coalesce(concat('d:', x.file_id, ':', x.def_key), concat('m:', x.file_id)) AS src_id,
  concat('i:', x.file_id, ':', x.import_no) AS dst_id,
  x.file_id,
  x.path,
  x.bstart,
  x.bend
FROM cst_imports AS x
