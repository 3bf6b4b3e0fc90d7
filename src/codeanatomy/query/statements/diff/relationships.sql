-- Relationships between symbols: edges between ids that are made from names.
SELECT
  definition.name,
  definition.path,
  lower(replace(replace(edge.edge_kind, 'CALLS_DEF', 'CALLS'), '_', ' ')) AS aspect,
  coalesce(target.name, edge.dst_id) AS value
FROM cpg_edges AS edge
JOIN definitions AS definition ON definition.node_id = edge.src_id
LEFT JOIN names AS target ON target.node_id = edge.dst_id
WHERE edge.edge_kind IN ('CALLS_DEF', 'INHERITS', 'IMPORTS', 'OVERRIDES', 'READS', 'WRITES', 'DECORATED_BY')
UNION ALL
SELECT
  class.name,
  class.path,
  'attribute' AS aspect,
  binding.name AS value
FROM cpg_nodes AS binding
JOIN cpg_nodes AS scope ON scope.node_id = binding.parent_id
JOIN symbols AS class ON class.name = scope.qname AND class.path = scope.path
WHERE binding.node_kind = 'BINDING'
  AND binding.subkind NOT IN ('def', 'class', 'import', 'implicit')
  AND scope.node_kind = 'SCOPE'
  AND scope.subkind = 'class'
