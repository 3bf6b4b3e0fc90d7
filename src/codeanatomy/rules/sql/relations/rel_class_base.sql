-- Bases of classes; one that a variable holds counts too.
-- output: rel_class_base
SELECT
  s.file_id,
  s.path,
  s.site_id,
  s.target_id,
  s.bstart,
  s.bend,
  s.line,
  s.candidate,
  s.place AS position,
  s.status,
  s.resolution_method,
  s.confidence,
  s.confidence / greatest(s.named_count, 1) AS score,
  greatest(s.named_count, 1) AS candidate_count,
  CASE WHEN greatest(s.named_count, 1) > 1 THEN concat('a:', s.file_id, ':', s.ask_no) END AS ambiguity_group_id,
  1 AS rule_priority
FROM site_answers AS s
WHERE s.role = 'base' AND s.kind IN ('class', 'name', 'builtin')
