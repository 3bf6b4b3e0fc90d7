-- Every aspect of each symbol, one value per row.
SELECT name, path, aspect, value
FROM (UNPIVOT symbols ON kind, async, parameters, returns, source INTO NAME aspect VALUE value)
UNION
SELECT name, path, aspect, value FROM relationships
