-- Functions that are found by their name and the name of their file, as pytest finds tests. A regular expression takes long
-- to prepare, so it is only looked at where LIKE does not exclude it.
-- output: entry_points
WITH functions AS (
  SELECT
    n.file_id,
    n.node_id,
    n.qname,
    n.path,
    n.line_start,
    substring(n.qname, length(m.qname) + 2) AS qualname,
    length(substring(n.qname, length(m.qname) + 2))
    - length(replace(substring(n.qname, length(m.qname) + 2), '.', '')) AS dots
  FROM cpg_nodes AS m
  JOIN cpg_nodes AS n ON n.file_id = m.file_id AND n.node_kind = 'DEF' AND n.subkind IN ('function', 'method')
  WHERE m.node_kind = 'MODULE'
),
files AS (
  SELECT m.file_id, p.pattern_no, p.name, p.member, p.member_dots, p.kind, p.confidence
  FROM entry_point_patterns AS p
  JOIN cpg_nodes AS m
    ON m.node_kind = 'MODULE'
    AND CASE WHEN m.path LIKE p.path_like THEN m.path RLIKE p.path ELSE false END
  WHERE p.matcher = 'function'
)
SELECT
  f.file_id,
  f.node_id,
  f.qname,
  p.kind,
  f.path,
  f.line_start AS line,
  min(p.name) AS evidence,
  max(p.confidence) AS confidence
FROM files AS p
JOIN functions AS f
  ON f.file_id = p.file_id
  AND coalesce(p.member_dots, f.dots) = f.dots
  AND f.qualname LIKE p.member ESCAPE '!'
GROUP BY f.file_id, f.node_id, f.qname, p.kind, f.path, f.line_start
