-- Bare decorators that a variable holds: of `@fixture`, with `fixture = pytest.fixture`, the call is no edge.
-- output: decorations
SELECT
  d.file_id,
  concat('d:', d.file_id, ':', d.def_key) AS node_id,
  n.qname AS decorator,
  d.bstart,
  d.bend,
  max(a.confidence) AS confidence
FROM cst_decorators AS d
JOIN answers AS a
  ON a.file_id = d.file_id
  AND a.ask_no = d.ask_no
  AND NOT a.is_named
  AND a.kind IN ('function', 'class', 'name', 'builtin')
JOIN cpg_nodes AS n ON n.node_id = a.target_id AND n.qname IS NOT NULL
WHERE d.text = d.dotted
GROUP BY d.file_id, d.def_key, n.qname, d.bstart, d.bend
