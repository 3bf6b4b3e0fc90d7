-- The distinct things that questions were answered with.
-- output: dim_qualified_names
SELECT
  n.file_id,
  a.target_id,
  coalesce(n.qname, n.name) AS name,
  min(a.kind) AS kind,
  min(a.status) AS status,
  n.path AS defining_path,
  count(*) AS asked
FROM answers AS a
JOIN cpg_nodes AS n ON n.node_id = a.target_id
GROUP BY n.file_id, a.target_id, n.qname, n.name, n.path
