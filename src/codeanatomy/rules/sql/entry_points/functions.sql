-- Functions that are found by their name and the name of their file, as pytest finds tests.
-- output: entry_points
SELECT
  n.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  n.line_start AS line,
  min(p.name) AS evidence,
  max(p.confidence) AS confidence
FROM entry_point_patterns AS p
JOIN cpg_nodes AS m ON m.node_kind = 'MODULE' AND m.path RLIKE p.path
JOIN cpg_nodes AS n
  ON n.file_id = m.file_id
  AND n.node_kind = 'DEF'
  AND n.subkind IN ('function', 'method')
  AND substring(n.qname, length(m.qname) + 2) RLIKE p.member
WHERE p.matcher = 'function'
GROUP BY n.file_id, n.node_id, n.qname, p.kind, n.path, n.line_start
