-- Symbols that no file here defines. They belong to no file: any file may be the one that mentions them.
-- output: cpg_nodes
-- kind: SYMBOL
-- needs: documents
SELECT
  a.target_id AS node_id,
  '__global__' AS file_id,
  concat('r:', s.repo_id) AS parent_id,
  regexp_extract(a.target_name, '[^.]*$', 0) AS name,
  a.target_name AS qname,
  min(a.kind) AS subkind,
  min(substr(a.question, 3)) AS text
FROM answers AS a
CROSS JOIN scan_repo AS s
WHERE a.target_id LIKE 's:%' AND a.status <> 'internal'
GROUP BY a.target_id, a.target_name, s.repo_id
