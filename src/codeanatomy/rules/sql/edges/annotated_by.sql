-- What an annotation annotates: a parameter, a definition's return, or a variable of the definition or module around it.
-- output: cpg_edges
-- kind: ANNOTATED_BY
SELECT
  concat('ANNOTATED_BY:', t.file_id, ':', t.type_no) AS edge_id,
  CASE
    WHEN t.role = 'parameter' THEN concat('p:', t.file_id, ':', t.owner_key, ':', t.position)
    WHEN t.role = 'return' THEN concat('d:', t.file_id, ':', t.owner_key)
    WHEN t.binding_key IS NOT NULL THEN concat('b:', t.file_id, ':', t.binding_key)
    ELSE coalesce(concat('d:', t.file_id, ':', t.def_key), concat('m:', t.file_id))
  END AS src_id,
  concat('t:', t.file_id, ':', t.type_no) AS dst_id,
  t.file_id,
  t.path,
  t.bstart,
  t.bend
FROM cst_type_exprs AS t
