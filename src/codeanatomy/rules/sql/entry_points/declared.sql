-- What project files declare as scripts and plug-ins, where the object or module that they name is defined.
-- output: entry_points
SELECT
  n.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  CASE WHEN n.node_kind = 'MODULE' THEN 1 ELSE n.line_start END AS line,
  concat(p.path, ' ', p.evidence) AS evidence,
  p.detail,
  p.confidence
FROM entry_point_patterns AS p
JOIN cpg_nodes AS n ON n.qname = p.name AND n.node_kind IN ('DEF', 'MODULE')
WHERE p.matcher = 'declaration'
