-- Imports, and the symbol that stands there.
-- output: rel_import_symbol
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
  CASE WHEN s.status = 'internal' THEN s.target_id ELSE regexp_extract(s.target_name, '[^.]*$', 0) END AS meaning,
  s.ctx AS resolution_method,
  CASE s.ctx WHEN 'exact_span' THEN 0.9D ELSE 0.7D END AS confidence,
  CASE s.ctx WHEN 'exact_span' THEN 0.9D ELSE 0.7D END / s.place AS score,
  s.place AS candidate_count,
  CASE WHEN s.place > 1 THEN concat('a:', s.file_id, ':', s.bstart, ':', s.bend) END AS ambiguity_group_id,
  1 AS rule_priority
FROM site_answers AS s
WHERE s.role = 'symbol_import' AND s.target_id IS NOT NULL
