-- Methods that a framework calls because of what their class inherits from; the nearest base is the evidence.
-- output: entry_points
SELECT
  n.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  n.line_start AS line,
  substring(min(concat(lpad(CAST(c.distance AS STRING), 3, '0'), c.ancestor)), 4) AS evidence,
  max(least(c.confidence, p.confidence)) AS confidence
FROM entry_point_patterns AS p
JOIN class_ancestors AS c ON c.ancestor = p.name
JOIN cpg_nodes AS n ON n.parent_id = c.class_id AND n.node_kind = 'DEF' AND n.subkind = 'method'
JOIN entry_point_patterns AS m
  ON m.pattern_no = p.pattern_no
  AND m.matcher = 'method'
  AND n.name LIKE m.member ESCAPE '!'
WHERE p.matcher = 'base'
GROUP BY n.file_id, n.node_id, n.qname, p.kind, n.path, n.line_start
