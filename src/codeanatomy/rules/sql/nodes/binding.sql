-- Names that a scope binds itself. A name it merely mentions is a row of sym_bindings, not a node.
-- output: cpg_nodes
-- kind: BINDING
SELECT
  concat('b:', b.file_id, ':', b.binding_key) AS node_id,
  b.file_id,
  b.path,
  concat('s:', b.file_id, ':', b.scope_key) AS parent_id,
  b.site_bstart AS bstart,
  b.site_bend AS bend,
  b.line_start,
  b.line_end,
  b.col_start,
  b.name,
  CASE WHEN b.scope_no = 0 THEN concat(m.module_fqn, '.', b.name) END AS qname,
  b.site_kind AS subkind,
  nullif(
    concat_ws(
      ',',
      CASE WHEN b.is_cell THEN 'cell' END,
      CASE WHEN b.is_parameter THEN 'parameter' END,
      CASE WHEN b.is_imported THEN 'imported' END,
      CASE WHEN b.is_annotated THEN 'annotated' END,
      CASE WHEN b.is_referenced THEN 'referenced' END
    ),
    ''
  ) AS flags
FROM sym_bindings AS b
JOIN py_module_index AS m ON m.file_id = b.file_id
WHERE b.target_key = b.binding_key
