-- Calls that decorators, `with` and `for` make.
-- output: cpg_nodes
-- kind: CALLSITE
SELECT
  concat('c:', c.file_id, ':i', c.implicit_no) AS node_id,
  c.file_id,
  c.path,
  coalesce(concat('d:', c.file_id, ':', c.def_key), concat('m:', c.file_id)) AS parent_id,
  c.bstart,
  c.bend,
  c.line_start,
  c.line_end,
  c.col_start,
  c.kind AS subkind
FROM cst_implicit_calls AS c
WHERE c.kind <> 'raise'
