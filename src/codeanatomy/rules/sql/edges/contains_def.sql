-- A module or a definition contains the definitions written directly in it.
-- output: cpg_edges
-- kind: CONTAINS
SELECT
  concat('CONTAINS:d:', x.file_id, ':', x.def_key) AS edge_id,
  coalesce(concat('d:', x.file_id, ':', x.container_key), concat('m:', x.file_id)) AS src_id,
  concat('d:', x.file_id, ':', x.def_key) AS dst_id,
  x.file_id,
  x.path,
  x.bstart,
  x.bend
FROM cst_defs AS x
