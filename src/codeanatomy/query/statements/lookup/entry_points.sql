-- Entry points of one kind, or of all.
SELECT qname AS name, kind, path, line, evidence, detail, confidence, node_id
FROM entry_points
WHERE $kind IS NULL OR kind = $kind
ORDER BY path, line, name, kind, evidence, detail
