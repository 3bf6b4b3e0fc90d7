-- Uses of names and attributes.
-- output: cpg_nodes
-- kind: NAME_REF
SELECT
  concat('n:', r.file_id, ':', r.ref_no) AS node_id,
  r.file_id,
  r.path,
  coalesce(concat('d:', r.file_id, ':', r.def_key), concat('m:', r.file_id)) AS parent_id,
  r.bstart,
  r.bend,
  r.line_start,
  r.line_end,
  r.col_start,
  r.name,
  CASE WHEN r.is_attribute THEN concat('attribute_', r.ctx) ELSE r.ctx END AS subkind,
  r.base AS text
FROM cst_name_refs AS r
