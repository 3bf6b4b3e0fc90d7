-- A definition has its parameters.
-- output: cpg_edges
-- kind: HAS_PARAM
SELECT
  concat('HAS_PARAM:', p.file_id, ':', p.def_key, ':', p.position) AS edge_id,
  concat('d:', p.file_id, ':', p.def_key) AS src_id,
  concat('p:', p.file_id, ':', p.def_key, ':', p.position) AS dst_id,
  p.file_id,
  p.path,
  p.bstart,
  p.bend
FROM cst_params AS p
