-- The call graph: which function or module can run which definition. One edge per pair.
-- output: cpg_edges
-- kind: CALLS_DEF
SELECT
  concat('CALLS_DEF:', r.code_id, ':', r.target_id) AS edge_id,
  r.code_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  min(r.resolution_method) AS resolution_method,
  max(r.confidence) AS confidence,
  count(*) AS site_count
FROM rel_callsite_qname AS r
WHERE r.status = 'internal'
GROUP BY r.code_id, r.target_id, r.file_id, r.path
