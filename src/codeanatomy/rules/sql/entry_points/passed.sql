-- Functions and classes that are passed to a call that registers them, such as `add_url_rule` or `atexit.register`.
-- output: entry_points
SELECT
  n.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  n.line_start AS line,
  t.qname AS evidence,
  min(detail.constant) AS detail,
  max(least(e.confidence, r.confidence, p.confidence)) AS confidence
FROM entry_point_patterns AS p
JOIN cpg_nodes AS t ON t.qname = p.name
JOIN cpg_edges AS e ON e.edge_kind = 'CALLS' AND e.dst_id = t.node_id AND e.confidence >= 0.5D
JOIN cst_arguments AS a
  ON concat('c:', a.file_id, ':', a.call_no) = e.src_id
  AND (a.position = p.position OR a.keyword = p.keyword)
JOIN cpg_edges AS r
  ON r.edge_kind = 'REFERENCES'
  AND r.file_id = a.file_id
  AND r.bstart = a.bstart
  AND r.bend = a.bend
  AND r.confidence >= 0.5D
JOIN cpg_nodes AS n ON n.node_id = r.dst_id AND n.node_kind = 'DEF'
LEFT JOIN cst_arguments AS detail
  ON detail.file_id = a.file_id
  AND detail.call_no = a.call_no
  AND (detail.position = p.detail_position OR detail.keyword = p.detail_keyword)
WHERE p.matcher = 'argument'
GROUP BY n.file_id, e.src_id, n.node_id, n.qname, p.kind, n.path, n.line_start, t.qname
