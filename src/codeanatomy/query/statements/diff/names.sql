-- Dotted names of every possible target of an edge, in any file; a variable of a class is named by the scope it is in.
-- A name that the repository should define and does not is marked, to tell it from the definition that is gone.
SELECT
  node.node_id,
  coalesce(node.qname, scope.qname || '.' || node.name)
  || CASE WHEN node.node_kind = 'QNAME' AND node.subkind = 'absent' THEN ' (absent)' ELSE '' END AS name
FROM whole_cpg_nodes AS node
LEFT JOIN whole_cpg_nodes AS scope ON scope.node_kind = 'SCOPE' AND scope.node_id = node.parent_id
WHERE node.node_kind IN ('DEF', 'MODULE', 'BINDING', 'QNAME')
