-- Aspects of symbols that only one of the builds has.
SELECT
  name,
  path,
  coalesce(latter.last_kind, former.last_kind) AS kind,
  CASE WHEN former.name IS NULL THEN 'added' WHEN latter.name IS NULL THEN 'removed' ELSE 'changed' END AS change,
  differing.aspect,
  list(differing.value ORDER BY differing.value) FILTER (differing.is_lost) AS lost,
  list(differing.value ORDER BY differing.value) FILTER (NOT differing.is_lost) AS gained
FROM (
  SELECT *, TRUE AS is_lost FROM (FROM before.aspects EXCEPT FROM after.aspects)
  UNION ALL
  SELECT *, FALSE AS is_lost FROM (FROM after.aspects EXCEPT FROM before.aspects)
) AS differing
LEFT JOIN before.symbols AS former USING (name, path)
LEFT JOIN after.symbols AS latter USING (name, path)
GROUP BY ALL
ORDER BY ALL
