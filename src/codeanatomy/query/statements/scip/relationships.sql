-- Base classes, and methods that a method overrides.
SELECT DISTINCT src_id, dst_id, edge_kind = 'OVERRIDES' AS overrides
FROM cpg_edges
WHERE edge_kind IN ('INHERITS', 'OVERRIDES')
ORDER BY ALL
