-- Full names that are the name, or end with it.
SELECT DISTINCT qname, qname = $name AS is_exact
FROM cpg_nodes
WHERE node_kind IN ('DEF', 'MODULE', 'BINDING', 'SYMBOL', 'QNAME')
  AND (qname = $name OR suffix(qname, '.' || $name))
ORDER BY ALL
