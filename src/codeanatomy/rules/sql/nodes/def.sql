-- Definitions. The id comes from the qualified name, never from an offset: other files point here.
-- output: cpg_nodes
-- kind: DEF
SELECT
  concat('d:', d.file_id, ':', d.def_key) AS node_id,
  d.file_id,
  d.path,
  coalesce(concat('d:', d.file_id, ':', d.container_key), concat('m:', d.file_id)) AS parent_id,
  d.bstart,
  d.bend,
  d.line_start,
  d.line_end,
  d.col_start,
  d.name,
  concat(m.module_fqn, '.', d.qualname) AS qname,
  d.kind AS subkind,
  d.returns AS text,
  d.ordinal,
  CASE WHEN d.kind IN ('function', 'method') THEN d.is_async END AS is_async
FROM cst_defs AS d
JOIN py_module_index AS m ON m.file_id = d.file_id
