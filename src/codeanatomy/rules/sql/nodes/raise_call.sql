-- Calls that `raise` makes: where it raises a class. What else is raised is no call.
-- output: cpg_nodes
-- kind: CALLSITE
SELECT
  made.site_id AS node_id,
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
JOIN (SELECT DISTINCT r.file_id, r.site_id FROM rel_callsite_qname AS r) AS made
  ON made.file_id = c.file_id AND made.site_id = concat('c:', c.file_id, ':i', c.implicit_no)
WHERE c.kind = 'raise'
