-- Annotations of parameters, returns and variables.
-- output: cpg_nodes
-- kind: TYPE_EXPR
SELECT
  concat('t:', t.file_id, ':', t.type_no) AS node_id,
  t.file_id,
  t.path,
  coalesce(concat('d:', t.file_id, ':', t.def_key), concat('m:', t.file_id)) AS parent_id,
  t.bstart,
  t.bend,
  t.line_start,
  t.line_end,
  t.col_start,
  t.target AS name,
  t.role AS subkind,
  t.text
FROM cst_type_exprs AS t
