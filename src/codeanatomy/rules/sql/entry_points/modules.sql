-- Modules that are run because of their name, such as `__main__.py`.
-- output: entry_points
SELECT
  n.file_id,
  n.node_id,
  n.qname,
  p.kind,
  n.path,
  1 AS line,
  min(p.name) AS evidence,
  max(p.confidence) AS confidence
FROM entry_point_patterns AS p
JOIN cpg_nodes AS n
  ON n.node_kind = 'MODULE'
  AND CASE WHEN n.path LIKE p.path_like THEN n.path RLIKE p.path ELSE false END
WHERE p.matcher = 'module'
GROUP BY n.file_id, n.node_id, n.qname, p.kind, n.path
