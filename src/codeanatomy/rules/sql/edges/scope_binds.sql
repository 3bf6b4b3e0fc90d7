-- A scope and the names it binds.
-- output: cpg_edges
-- kind: SCOPE_BINDS
SELECT
  concat('SCOPE_BINDS:', b.file_id, ':', b.binding_key) AS edge_id,
  concat('s:', b.file_id, ':', b.scope_key) AS src_id,
  concat('b:', b.file_id, ':', b.binding_key) AS dst_id,
  b.file_id,
  b.path,
  b.site_bstart AS bstart,
  b.site_bend AS bend
FROM sym_bindings AS b
WHERE b.target_key = b.binding_key
