-- Functions and classes that a framework's decorator registers. The detail is an argument of the decorator's call.
-- output: entry_points
SELECT
  d.file_id,
  d.node_id,
  n.qname,
  p.kind,
  n.path,
  n.line_start AS line,
  d.decorator AS evidence,
  min(a.constant) AS detail,
  max(least(d.confidence, p.confidence)) AS confidence
FROM entry_point_patterns AS p
JOIN decorations AS d ON d.decorator = p.name
JOIN cpg_nodes AS n ON n.node_id = d.node_id
LEFT JOIN cst_callsites AS c ON c.file_id = d.file_id AND c.bstart = d.bstart AND c.bend = d.bend
LEFT JOIN cst_arguments AS a
  ON a.file_id = c.file_id
  AND a.call_no = c.call_no
  AND (a.position = p.detail_position OR a.keyword = p.detail_keyword)
WHERE p.matcher = 'decorator'
GROUP BY d.file_id, d.node_id, n.qname, p.kind, n.path, n.line_start, d.decorator, d.bstart
