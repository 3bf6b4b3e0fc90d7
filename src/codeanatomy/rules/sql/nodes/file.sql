-- Every file of the snapshot, also one that could not be read or parsed.
-- output: cpg_nodes
-- kind: FILE
SELECT
  concat('f:', f.file_id) AS node_id,
  f.file_id,
  f.path,
  concat('r:', s.repo_id) AS parent_id,
  regexp_extract(f.path, '[^/]*$', 0) AS name,
  f.status AS subkind,
  f.detail AS text,
  f.line_count AS line_end
FROM repo_files AS f
CROSS JOIN scan_repo AS s
