-- An import and what only the semantic document says it binds.
-- output: cpg_edges
-- kind: IMPORT_BINDS
-- needs: documents
SELECT
  concat('IMPORT_BINDS:', r.site_id, ':s', -r.ask_no, ':', r.candidate) AS edge_id,
  r.site_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  r.bstart,
  r.bend,
  r.line,
  r.resolution_method,
  r.confidence,
  r.candidate_count,
  r.ambiguity_group_id
FROM rel_import_symbol AS r
WHERE r.agreement <> 'agrees'
