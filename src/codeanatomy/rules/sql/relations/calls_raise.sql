-- Calls that `raise` makes: it makes an instance of what it raises if that is a class. An instance is raised as it is,
-- even one that can be called.
-- output: rel_callsite_qname
SELECT
  s.file_id,
  s.path,
  s.site_id,
  s.call_id AS target_id,
  s.bstart,
  s.bend,
  s.line,
  s.candidate,
  s.code_id,
  s.status,
  s.kind,
  s.resolution_method,
  s.confidence,
  s.confidence / s.call_count AS score,
  s.call_count AS candidate_count,
  CASE WHEN s.call_count > 1 THEN concat('a:', s.file_id, ':', s.ask_no) END AS ambiguity_group_id,
  2 AS rule_priority
FROM site_answers AS s
WHERE s.role = 'raise' AND s.kind = 'class' AND s.call_id IS NOT NULL AND s.status = 'internal'
