-- Dotted names of what an edge can lead to, in any file; a variable of a class is named by the scope it is in. What
-- should be in the repository and is not says so, for its name alone would be that of what is gone.
SELECT
  node.node_id,
  coalesce(node.qname, scope.qname || '.' || node.name)
  || CASE WHEN node.node_kind = 'QNAME' AND node.subkind = 'absent' THEN ' (absent)' ELSE '' END AS name
FROM whole_cpg_nodes AS node
LEFT JOIN whole_cpg_nodes AS scope ON scope.node_kind = 'SCOPE' AND scope.node_id = node.parent_id
WHERE node.node_kind IN ('DEF', 'MODULE', 'BINDING', 'QNAME')
