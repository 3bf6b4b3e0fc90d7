-- Names without a definition here. They belong to no file: any file may be the one that mentions them.
-- output: cpg_nodes
-- kind: QNAME
SELECT
  a.target_id AS node_id,
  '__global__' AS file_id,
  concat('r:', s.repo_id) AS parent_id,
  regexp_extract(a.target_name, '[^.]*$', 0) AS name,
  a.target_name AS qname,
  min(CASE WHEN a.kind = 'module' THEN 'package' WHEN a.kind = 'builtin' THEN 'builtin' ELSE a.status END) AS subkind
FROM answers AS a
CROSS JOIN scan_repo AS s
WHERE a.target_name IS NOT NULL AND a.target_id LIKE 'q:%'
GROUP BY a.target_id, a.target_name, s.repo_id
