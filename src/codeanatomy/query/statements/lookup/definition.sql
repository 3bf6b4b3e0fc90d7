-- Where the names are defined; a module is defined at its first line.
SELECT name, kind AS what, path, line, 1.0 AS confidence, 'syntax' AS method
FROM definitions
WHERE list_contains($names, name)
UNION ALL
SELECT qname, 'module', path, 1, 1.0, 'syntax'
FROM cpg_nodes
WHERE node_kind = 'MODULE' AND list_contains($names, qname)
ORDER BY path, line, name, what
