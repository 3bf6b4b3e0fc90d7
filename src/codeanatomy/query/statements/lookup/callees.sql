-- What the names call: rows of the view `calls`, but nodes are read once for both ends, as in `callers`.
WITH named AS MATERIALIZED (
  SELECT node_id, qname, node_kind, subkind
  FROM cpg_nodes
  WHERE node_kind IN ('MODULE', 'DEF', 'QNAME', 'SYMBOL')
)
SELECT DISTINCT
  caller.qname AS name,
  callee.qname AS what,
  edge.path,
  edge.line,
  edge.confidence,
  edge.resolution_method AS method
FROM cpg_edges AS edge
JOIN named AS caller ON caller.node_id = edge.code_id
JOIN named AS callee ON callee.node_id = edge.dst_id
WHERE edge.edge_kind = 'CALLS' AND edge.confidence >= 0.5 AND list_contains($names, caller.qname)
  AND callee.qname IS NOT NULL AND callee.subkind <> 'absent'
  AND NOT (callee.node_kind = 'DEF' AND callee.subkind = 'class')
ORDER BY path, line, name, what
