-- Variables, and other names that something refers to as such.
SELECT b.file_id, b.binding_no, b.binding_key, b.name, b.site_kind, b.site_bstart, b.site_bend, s.kind, s.def_key
FROM sym_bindings AS b
JOIN sym_scopes AS s ON s.file_id = b.file_id AND s.scope_no = b.scope_no
WHERE b.target_key = b.binding_key
  AND (
    coalesce(b.site_kind, '') NOT IN ('def', 'class', 'type_alias', 'import')
    OR concat('b:', b.file_id, ':', b.binding_key) IN (
      SELECT dst_id FROM cpg_edges WHERE edge_kind IN ('REFERENCES', 'IMPORT_BINDS', 'CALLS')
    )
  )
ORDER BY b.file_id, b.binding_no
