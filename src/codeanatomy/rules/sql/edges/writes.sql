-- Which function or module assigns which variable of a module or class through an attribute.
-- output: cpg_edges
-- kind: WRITES
SELECT
  concat('WRITES:', r.code_id, ':', r.target_id) AS edge_id,
  r.code_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  min(r.resolution_method) AS resolution_method,
  max(r.confidence) AS confidence,
  count(*) AS site_count
FROM rel_name_qname AS r
WHERE r.kind = 'variable' AND NOT r.ctx LIKE '%load'
GROUP BY r.code_id, r.target_id, r.file_id, r.path
