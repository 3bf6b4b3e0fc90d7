-- Where the names are used, and whether they are read, written or deleted.
SELECT DISTINCT name, context AS what, path, line, confidence, method
FROM "references"
WHERE list_contains($names, name)
ORDER BY path, line, name, what
