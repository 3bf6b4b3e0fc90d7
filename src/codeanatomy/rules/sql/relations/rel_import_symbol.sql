-- Imports, and the symbol that stands there.
-- output: rel_import_symbol
-- needs: documents
SELECT
  s.file_id,
  s.path,
  s.site_id,
  s.target_id AS target_id,
  s.bstart,
  s.bend,
  s.line,
  s.candidate,
  s.ask_no,
  s.status,
  s.kind,
  s.name_agreement AS agreement,
  s.ctx AS resolution_method,
  CASE WHEN s.name_agreement = 'contradicts' THEN 0.4D WHEN s.ctx = 'exact_span' THEN 0.9D ELSE 0.7D END AS confidence,
  CASE WHEN s.name_agreement = 'contradicts' THEN 0.4D WHEN s.ctx = 'exact_span' THEN 0.9D ELSE 0.7D END / s.place AS score,
  s.place AS candidate_count,
  CASE WHEN s.place > 1 THEN concat('a:', s.file_id, ':', s.bstart, ':', s.bend) END AS ambiguity_group_id,
  1 AS rule_priority
FROM site_answers AS s
WHERE s.target_id IS NOT NULL
  AND s.role = 'symbol_import'
