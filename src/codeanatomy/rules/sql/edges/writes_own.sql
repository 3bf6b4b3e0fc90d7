-- Which function or module assigns which variable of its own module.
-- output: cpg_edges
-- kind: WRITES
-- method: scope
SELECT
  concat('WRITES:', coalesce(concat('d:', r.file_id, ':', r.caller_key), concat('m:', r.file_id)), ':b:', r.file_id, ':', r.binding_key) AS edge_id,
  coalesce(concat('d:', r.file_id, ':', r.caller_key), concat('m:', r.file_id)) AS src_id,
  concat('b:', r.file_id, ':', r.binding_key) AS dst_id,
  r.file_id,
  r.path,
  count(*) AS site_count
FROM cst_name_refs AS r
JOIN sym_bindings AS b ON b.file_id = r.file_id AND b.binding_no = r.binding_no
WHERE r.ctx <> 'load' AND b.scope_no = 0
GROUP BY r.file_id, r.path, r.caller_key, r.binding_key
