-- The call graph: which function or module can run which definition. One edge per pair. Where the semantic document
-- contradicts the repository's own answers, those stand.
-- output: cpg_edges
-- kind: CALLS_DEF
SELECT
  concat('CALLS_DEF:', r.code_id, ':', r.target_id) AS edge_id,
  r.code_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  coalesce(min(r.own_method), min(r.semantic_method)) AS resolution_method,
  max(r.confidence) AS confidence,
  count(*) AS site_count
FROM (
  SELECT q.code_id, q.target_id, q.file_id, q.path, q.resolution_method AS own_method, NULL AS semantic_method, q.confidence
  FROM rel_callsite_qname AS q
  WHERE q.status = 'internal'
  UNION ALL
  SELECT y.code_id, y.target_id, y.file_id, y.path, NULL AS own_method, y.resolution_method AS semantic_method, y.confidence
  FROM rel_callsite_symbol AS y
  WHERE y.status = 'internal' AND y.agreement = 'adds'
) AS r
GROUP BY r.code_id, r.target_id, r.file_id, r.path
