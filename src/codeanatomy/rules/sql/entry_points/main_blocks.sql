-- Modules that do something else when they are run as a script.
-- output: entry_points
SELECT
  b.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  min(b.line_start) AS line,
  '__name__ == "__main__"' AS evidence,
  max(p.confidence) AS confidence
FROM entry_point_patterns AS p
CROSS JOIN cst_main_blocks AS b
JOIN cpg_nodes AS n ON n.node_id = concat('m:', b.file_id)
WHERE p.matcher = 'main_block'
GROUP BY b.file_id, n.node_id, n.qname, p.kind, n.path
