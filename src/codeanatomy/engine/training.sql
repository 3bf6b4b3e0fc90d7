-- A query with the kinds of operators that builds use, so that the classes of Spark that run them are loaded.
WITH parts AS (
  SELECT left_side.path, part.name AS name, part.start AS start
  FROM left_side LATERAL VIEW explode(parts) AS part
), ranked AS (
  SELECT path, name, start, row_number() OVER (PARTITION BY path ORDER BY start, name) AS rank,
         lag(name) OVER (PARTITION BY path ORDER BY start, name) AS previous
  FROM parts
), joined AS (
  SELECT ranked.path, ranked.name, sha2(concat_ws('/', ranked.path, ranked.name), 256) AS id, right_side.value
  FROM ranked LEFT JOIN right_side ON ranked.path = right_side.path AND right_side.value > 0
  WHERE rank <= 3 AND coalesce(previous, '') <> 'x' AND ranked.name RLIKE '^n'
  UNION ALL
  SELECT path, CAST(NULL AS STRING), substring(md5(path), 1, 8), value FROM right_side
  WHERE path NOT IN (SELECT path FROM left_side) AND EXISTS (SELECT 1 FROM parts WHERE parts.start = value)
)
SELECT path, count(*) AS rows, count(DISTINCT name) AS names, min(id) AS first, sum(xxhash64(id, value) % 1000) AS mix,
       collect_set(name) AS all_names, max_by(name, value) AS latest, bit_xor(hash(id)) AS digest
FROM joined GROUP BY path HAVING count(*) > 0 ORDER BY path LIMIT 100
