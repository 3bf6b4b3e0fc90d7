-- Which module imports which, under dotted names.
-- output: imports
SELECT DISTINCT
  e.file_id,
  importer.qname AS importer,
  imported.qname AS imported,
  e.path,
  imported.node_kind = 'MODULE' AS is_internal
FROM cpg_edges AS e
JOIN cpg_nodes AS importer ON importer.node_id = e.src_id
JOIN cpg_nodes AS imported ON imported.node_id = e.dst_id
WHERE e.edge_kind = 'IMPORTS'
