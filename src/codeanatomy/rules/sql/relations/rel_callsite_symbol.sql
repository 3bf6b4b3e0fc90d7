-- Calls, and what the symbol at the last name of the callee runs. Of calls that statements and properties make, only
-- code of the repository counts.
-- output: rel_callsite_symbol
-- needs: documents
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
  s.ask_no,
  s.status,
  s.kind,
  s.call_agreement AS agreement,
  s.ctx AS resolution_method,
  CASE WHEN s.call_agreement = 'contradicts' THEN 0.4D WHEN s.ctx = 'exact_span' THEN 0.9D ELSE 0.7D END AS confidence,
  CASE WHEN s.call_agreement = 'contradicts' THEN 0.4D WHEN s.ctx = 'exact_span' THEN 0.9D ELSE 0.7D END / s.place AS score,
  s.place AS candidate_count,
  CASE WHEN s.place > 1 THEN concat('a:', s.file_id, ':', s.bstart, ':', s.bend) END AS ambiguity_group_id,
  1 AS rule_priority
FROM site_answers AS s
WHERE s.call_id IS NOT NULL
  AND (s.role = 'symbol_call' OR (s.role = 'symbol_implicit_call' AND s.status = 'internal'))
