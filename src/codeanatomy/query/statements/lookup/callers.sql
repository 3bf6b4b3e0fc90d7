-- Calls of the names. The view `calls` has no calls of classes, nor of names that the repository lacks; these are found.
-- Nodes are read once for both ends: reading their ids takes most of the time.
WITH named AS MATERIALIZED (
  SELECT node_id, qname
  FROM cpg_nodes
  WHERE node_kind IN ('MODULE', 'DEF', 'QNAME', 'SYMBOL')
)
SELECT DISTINCT
  callee.qname AS name,
  caller.qname AS what,
  edge.path,
  edge.line,
  edge.confidence,
  edge.resolution_method AS method
FROM cpg_edges AS edge
JOIN named AS callee ON callee.node_id = edge.dst_id
JOIN named AS caller ON caller.node_id = edge.code_id
WHERE edge.edge_kind = 'CALLS' AND edge.confidence >= 0.5 AND list_contains($names, callee.qname)
ORDER BY path, line, name, what
