-- Functions and classes, and what decorates them, by its dotted name.
-- output: decorations
SELECT e.file_id, e.src_id AS node_id, n.qname AS decorator, e.bstart, e.bend, e.confidence
FROM cpg_edges AS e
JOIN cpg_nodes AS n ON n.node_id = e.dst_id
WHERE e.edge_kind = 'DECORATED_BY' AND n.qname IS NOT NULL
