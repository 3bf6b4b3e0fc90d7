-- The repository contains its files.
-- output: cpg_edges
-- kind: CONTAINS
SELECT
  concat('CONTAINS:f:', f.file_id) AS edge_id,
  concat('r:', s.repo_id) AS src_id,
  concat('f:', f.file_id) AS dst_id,
  f.file_id,
  f.path
FROM repo_files AS f
CROSS JOIN scan_repo AS s
