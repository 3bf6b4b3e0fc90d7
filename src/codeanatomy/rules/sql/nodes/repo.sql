-- The repository: the one node that no file owns. It is there even when no file is.
-- output: cpg_nodes
-- kind: REPO
SELECT
  concat('r:', s.repo_id) AS node_id,
  '__global__' AS file_id,
  s.repo_id AS name
FROM scan_repo AS s
