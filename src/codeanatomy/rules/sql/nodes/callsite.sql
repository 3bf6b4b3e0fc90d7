-- Calls; local to their file, so their place in it names them.
-- output: cpg_nodes
-- kind: CALLSITE
SELECT
  concat('c:', c.file_id, ':', c.call_no) AS node_id,
  c.file_id,
  c.path,
  coalesce(concat('d:', c.file_id, ':', c.def_key), concat('m:', c.file_id)) AS parent_id,
  c.bstart,
  c.bend,
  c.line_start,
  c.line_end,
  c.col_start,
  c.callee_name AS name,
  c.callee_shape AS subkind,
  c.dotted AS text
FROM cst_callsites AS c
