-- Reading a property runs its function; assigning to it runs its setter.
-- output: rel_callsite_qname
SELECT
  s.file_id,
  s.path,
  s.site_id,
  CASE WHEN s.ctx = 'attribute_load' THEN s.target_id ELSE s.set_id END AS target_id,
  s.bstart,
  s.bend,
  s.line,
  s.candidate,
  s.code_id,
  s.status,
  s.kind,
  s.resolution_method,
  s.confidence,
  s.confidence / s.named_count AS score,
  s.named_count AS candidate_count,
  CASE WHEN s.named_count > 1 THEN concat('a:', s.file_id, ':', s.ask_no) END AS ambiguity_group_id,
  3 AS rule_priority
FROM site_answers AS s
WHERE s.role = 'name'
  AND s.kind = 'property'
  AND s.ctx LIKE 'attribute_%'
  AND s.is_named
  AND CASE WHEN s.ctx = 'attribute_load' THEN s.target_id ELSE s.set_id END IS NOT NULL
