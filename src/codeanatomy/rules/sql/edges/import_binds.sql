-- An import and what it binds: `import a.b` binds `a`.
-- output: cpg_edges
-- kind: IMPORT_BINDS
SELECT
  concat('IMPORT_BINDS:', s.site_id, ':', s.candidate) AS edge_id,
  s.site_id AS src_id,
  s.target_id AS dst_id,
  s.file_id,
  s.path,
  s.bstart,
  s.bend,
  s.resolution_method,
  s.confidence,
  s.named_count AS candidate_count,
  CASE WHEN s.named_count > 1 THEN concat('a:', s.file_id, ':', s.ask_no) END AS ambiguity_group_id
FROM site_answers AS s
WHERE s.role = 'import' AND s.is_named AND s.target_id IS NOT NULL
