-- Decorators by how they are written, where nothing tells what they are: `@app.route("/")` of a parameter `app`.
-- output: entry_points
SELECT
  d.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  n.line_start AS line,
  concat('@', d.dotted) AS evidence,
  min(a.constant) AS detail,
  max(p.confidence) AS confidence
FROM entry_point_patterns AS p
JOIN cst_decorators AS d
  ON d.dotted LIKE p.member ESCAPE '!'
  AND coalesce(p.member_dots, length(d.dotted) - length(replace(d.dotted, '.', ''))) = length(d.dotted) - length(replace(d.dotted, '.', ''))
JOIN cpg_nodes AS n ON n.node_id = concat('d:', d.file_id, ':', d.def_key)
LEFT JOIN decorations AS known ON known.node_id = n.node_id AND known.bstart = d.bstart
LEFT JOIN cst_callsites AS c ON c.file_id = d.file_id AND c.bstart = d.bstart AND c.bend = d.bend
LEFT JOIN cst_arguments AS a
  ON a.file_id = c.file_id
  AND a.call_no = c.call_no
  AND (a.position = p.detail_position OR a.keyword = p.detail_keyword)
WHERE p.matcher = 'written' AND known.node_id IS NULL
GROUP BY d.file_id, n.node_id, n.qname, p.kind, n.path, n.line_start, d.dotted, d.bstart
