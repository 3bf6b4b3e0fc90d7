-- What is said of a symbol in one build and not in the other.
SELECT
  name,
  path,
  coalesce(latter.last_kind, former.last_kind) AS kind,
  CASE WHEN former.name IS NULL THEN 'added' WHEN latter.name IS NULL THEN 'removed' ELSE 'changed' END AS change,
  differing.aspect,
  list(differing.value ORDER BY differing.value) FILTER (differing.is_lost) AS lost,
  list(differing.value ORDER BY differing.value) FILTER (NOT differing.is_lost) AS gained
FROM (
  SELECT *, TRUE AS is_lost FROM (FROM before.said EXCEPT FROM after.said)
  UNION ALL
  SELECT *, FALSE AS is_lost FROM (FROM after.said EXCEPT FROM before.said)
) AS differing
LEFT JOIN before.symbols AS former USING (name, path)
LEFT JOIN after.symbols AS latter USING (name, path)
GROUP BY ALL
ORDER BY ALL
