-- What the names call.
SELECT DISTINCT caller AS name, callee AS what, path, line, confidence, method
FROM calls
WHERE list_contains($names, caller)
ORDER BY path, line, name, what
