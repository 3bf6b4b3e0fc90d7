-- Full names whose last part is spelled like `last`, the most alike first.
SELECT qname
FROM cpg_nodes
WHERE node_kind IN ('DEF', 'MODULE') AND levenshtein(name, $last) <= 2
ORDER BY levenshtein(name, $last), qname
LIMIT $limit
