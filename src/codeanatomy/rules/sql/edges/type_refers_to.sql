-- An annotation and every name in it.
-- output: cpg_edges
-- kind: TYPE_REFERS_TO
SELECT
  concat('TYPE_REFERS_TO:', r.file_id, ':', r.type_no, ':', r.target_id) AS edge_id,
  concat('t:', r.file_id, ':', r.type_no) AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  min(r.resolution_method) AS resolution_method,
  max(r.confidence) AS confidence,
  count(*) AS site_count
FROM rel_name_qname AS r
WHERE r.type_no IS NOT NULL
GROUP BY r.file_id, r.path, r.type_no, r.target_id
