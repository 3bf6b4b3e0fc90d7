-- The same, where the name that a project file declares is bound by an import: `pkg:main` of `from .cli import main`.
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
  max(least(e.confidence, p.confidence)) AS confidence
FROM entry_point_patterns AS p
JOIN cst_imports AS i
  ON i.def_no IS NULL AND i.bound_name = regexp_extract(p.name, '[^.]*$', 0)
JOIN cpg_nodes AS m
  ON m.node_id = concat('m:', i.file_id) AND concat(m.qname, '.', i.bound_name) = p.name
JOIN cpg_edges AS e
  ON e.edge_kind = 'IMPORT_BINDS' AND e.src_id = concat('i:', i.file_id, ':', i.import_no)
JOIN cpg_nodes AS n ON n.node_id = e.dst_id AND n.node_kind IN ('DEF', 'MODULE')
WHERE p.matcher = 'declaration'
GROUP BY n.file_id, n.node_id, n.qname, p.kind, n.path, n.line_start, n.node_kind, p.path, p.evidence, p.detail
