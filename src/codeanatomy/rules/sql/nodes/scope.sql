-- Scopes of functions, classes, lambdas, comprehensions and type parameters, and the module's own.
-- output: cpg_nodes
-- kind: SCOPE
SELECT
  concat('s:', s.file_id, ':', s.scope_key) AS node_id,
  s.file_id,
  s.path,
  coalesce(concat('d:', s.file_id, ':', s.def_key), concat('m:', s.file_id)) AS parent_id,
  s.bstart,
  s.bend,
  s.line_start,
  s.line_end,
  s.col_start,
  s.name,
  concat_ws('.', m.module_fqn, nullif(s.qualname, '')) AS qname,
  s.kind AS subkind,
  s.ordinal
FROM sym_scopes AS s
JOIN py_module_index AS m ON m.file_id = s.file_id
