-- Calls that `raise` makes: where it raises a class. What else is raised is no call.
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
JOIN (
  SELECT DISTINCT a.file_id, a.ask_no
  FROM answers AS a
  WHERE a.kind = 'class' AND a.call_id IS NOT NULL AND a.status = 'internal'
) AS classes ON classes.file_id = c.file_id AND classes.ask_no = c.ask_no
WHERE c.kind = 'raise'
