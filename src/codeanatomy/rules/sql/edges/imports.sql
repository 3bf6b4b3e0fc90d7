-- Which module imports, or imports from, which.
-- output: cpg_edges
-- kind: IMPORTS
SELECT
  concat('IMPORTS:', concat('m:', r.file_id), ':', r.target_id) AS edge_id,
  concat('m:', r.file_id) AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  min(r.resolution_method) AS resolution_method,
  max(r.confidence) AS confidence,
  count(*) AS site_count
FROM rel_import_module AS r
GROUP BY concat('m:', r.file_id), r.target_id, r.file_id, r.path
