-- Uses of names and what they refer to, under dotted names.
-- output: references
SELECT
  e.file_id,
  coalesce(target.qname, target.name) AS name,
  target.node_kind AS kind,
  e.path,
  e.line,
  site.subkind AS context,
  e.confidence,
  e.resolution_method AS method
FROM cpg_edges AS e
JOIN cpg_nodes AS site ON site.node_id = e.src_id
JOIN cpg_nodes AS target ON target.node_id = e.dst_id
WHERE e.edge_kind = 'REFERENCES' AND e.confidence >= 0.5D
