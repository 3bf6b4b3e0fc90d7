-- A scope and the one around it.
-- output: cpg_edges
-- kind: SCOPE_PARENT
SELECT
  concat('SCOPE_PARENT:', s.file_id, ':', s.scope_key) AS edge_id,
  concat('s:', s.file_id, ':', s.scope_key) AS src_id,
  concat('s:', s.file_id, ':', s.parent_key) AS dst_id,
  s.file_id,
  s.path,
  s.bstart,
  s.bend
FROM sym_scopes AS s
WHERE s.parent_key IS NOT NULL
