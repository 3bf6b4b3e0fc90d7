-- The module that an import statement names.
-- output: rel_import_module
SELECT
  s.file_id,
  s.path,
  s.site_id,
  s.target_id,
  s.bstart,
  s.bend,
  s.line,
  s.candidate,
  s.status,
  s.resolution_method,
  s.confidence,
  s.confidence / s.named_count AS score,
  s.named_count AS candidate_count,
  CASE WHEN s.named_count > 1 THEN concat('a:', s.file_id, ':', s.ask_no) END AS ambiguity_group_id,
  1 AS rule_priority
FROM site_answers AS s
WHERE s.role = 'import_module' AND s.target_id IS NOT NULL
