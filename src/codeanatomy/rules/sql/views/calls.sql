-- The call graph for people: one row per call and function it can run, under dotted names. What is more likely wrong
-- than right (a semantic document that contradicts the repository) is left to the edges and to `disagreements`.
-- output: calls
SELECT
  e.file_id,
  caller.qname AS caller,
  callee.qname AS callee,
  e.path,
  e.line,
  e.confidence,
  e.resolution_method AS method
FROM cpg_edges AS e
JOIN cpg_nodes AS caller ON caller.node_id = e.code_id
JOIN cpg_nodes AS callee ON callee.node_id = e.dst_id
WHERE e.edge_kind = 'CALLS'
  AND e.confidence >= 0.5D
  AND callee.qname IS NOT NULL
  AND callee.subkind <> 'absent'
  AND NOT (callee.node_kind = 'DEF' AND callee.subkind = 'class')
