-- A module or a definition contains its scope and those of its comprehensions.
-- output: cpg_edges
-- kind: CONTAINS
SELECT
  concat('CONTAINS:s:', x.file_id, ':', x.scope_key) AS edge_id,
  coalesce(concat('d:', x.file_id, ':', x.def_key), concat('m:', x.file_id)) AS src_id,
  concat('s:', x.file_id, ':', x.scope_key) AS dst_id,
  x.file_id,
  x.path,
  x.bstart,
  x.bend
FROM sym_scopes AS x
