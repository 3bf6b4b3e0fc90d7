-- Decorators that are a member of a decorated function: `@cli.command()`, where `click.group` made `cli` a group. Which
-- decorators make what is part of the patterns. A group can be made by another, in any file; four levels are followed.
-- output: decorations
WITH members AS (
  SELECT
    d.file_id,
    concat('d:', d.file_id, ':', d.def_key) AS node_id,
    e.dst_id AS object_id,
    substring(d.dotted, e.bend - e.bstart + 2) AS member,
    d.bstart,
    d.bend,
    e.confidence
  FROM cst_decorators AS d
  JOIN cpg_edges AS e ON e.file_id = d.file_id AND e.bstart = d.bstart AND e.edge_kind = 'REFERENCES'
  WHERE e.bend < d.bend AND substring(d.dotted, e.bend - e.bstart + 1, 1) = '.'
),
makers AS (
  SELECT DISTINCT p.name, p.makes FROM entry_point_patterns AS p WHERE p.matcher = 'decorator' AND p.makes IS NOT NULL
),
made_1 AS (
  SELECT e.src_id AS node_id, p.makes
  FROM cpg_edges AS e
  JOIN cpg_nodes AS n ON n.node_id = e.dst_id
  JOIN makers AS p ON p.name = n.qname
  WHERE e.edge_kind = 'DECORATED_BY'
),
made_2 AS (
  SELECT node_id, makes FROM made_1
  UNION
  SELECT b.node_id, p.makes
  FROM made_1 AS m
  JOIN members AS b ON b.object_id = m.node_id
  JOIN makers AS p ON p.name = concat(m.makes, '.', b.member)
),
made_3 AS (
  SELECT node_id, makes FROM made_2
  UNION
  SELECT b.node_id, p.makes
  FROM made_2 AS m
  JOIN members AS b ON b.object_id = m.node_id
  JOIN makers AS p ON p.name = concat(m.makes, '.', b.member)
),
made_4 AS (
  SELECT node_id, makes FROM made_3
  UNION
  SELECT b.node_id, p.makes
  FROM made_3 AS m
  JOIN members AS b ON b.object_id = m.node_id
  JOIN makers AS p ON p.name = concat(m.makes, '.', b.member)
)
SELECT
  b.file_id,
  b.node_id,
  concat(m.makes, '.', b.member) AS decorator,
  b.bstart,
  b.bend,
  min(b.confidence) AS confidence
FROM members AS b
JOIN made_4 AS m ON m.node_id = b.object_id
GROUP BY b.file_id, b.node_id, m.makes, b.member, b.bstart, b.bend
