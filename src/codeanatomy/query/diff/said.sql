-- Everything that is said of each symbol, one thing per row.
SELECT name, path, aspect, value
FROM (UNPIVOT symbols ON kind, async, parameters, returns, source INTO NAME aspect VALUE value)
UNION
SELECT name, path, aspect, value FROM ties
