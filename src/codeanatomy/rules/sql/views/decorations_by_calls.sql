-- What the call of a decorator runs, where a variable holds it (`new = app.route`) or only an index knows what it is.
-- output: decorations
SELECT
  d.file_id,
  concat('d:', d.file_id, ':', d.def_key) AS node_id,
  n.qname AS decorator,
  d.bstart,
  d.bend,
  max(e.confidence) AS confidence
FROM cst_decorators AS d
JOIN cpg_edges AS e
  ON e.file_id = d.file_id
  AND e.bstart = d.bstart
  AND e.bend = d.bend
  AND e.edge_kind = 'CALLS'
  AND e.confidence >= 0.5D
JOIN cpg_nodes AS n ON n.node_id = e.dst_id AND n.qname IS NOT NULL
LEFT JOIN cpg_edges AS named
  ON named.edge_kind = 'DECORATED_BY'
  AND named.src_id = concat('d:', d.file_id, ':', d.def_key)
  AND named.dst_id = e.dst_id
WHERE named.edge_id IS NULL
GROUP BY d.file_id, d.def_key, n.qname, d.bstart, d.bend
