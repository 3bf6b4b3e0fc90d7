-- Calls, and what the symbol at the last name of the callee runs. Of calls that statements and properties make, only
-- code of the repository counts.
-- output: rel_callsite_symbol
SELECT
  r.file_id,
  r.path,
  r.site_id,
  r.target_id,
  r.bstart,
  r.bend,
  r.line,
  r.candidate,
  r.code_id,
  r.ask_no,
  r.status,
  r.kind,
  r.meaning,
  r.agreement,
  r.resolution_method,
  CASE r.agreement WHEN 'contradicts' THEN 0.4D ELSE r.confidence END AS confidence,
  CASE r.agreement WHEN 'contradicts' THEN 0.4D ELSE r.confidence END / r.candidate_count AS score,
  r.candidate_count,
  CASE WHEN r.candidate_count > 1 THEN concat('a:', r.file_id, ':', r.bstart, ':', r.bend) END AS ambiguity_group_id,
  1 AS rule_priority
FROM (
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
    CASE WHEN s.status = 'internal' THEN s.call_id ELSE regexp_extract(s.target_name, '[^.]*$', 0) END AS meaning,
    CASE
      WHEN array_contains(
        own.meanings, CASE WHEN s.status = 'internal' THEN s.call_id ELSE regexp_extract(s.target_name, '[^.]*$', 0) END
      ) THEN 'agrees'
      WHEN own.has_internal OR (own.has_external AND s.status <> 'internal') THEN 'contradicts'
      ELSE 'adds'
    END AS agreement,
    s.ctx AS resolution_method,
    CASE s.ctx WHEN 'exact_span' THEN 0.9D ELSE 0.7D END AS confidence,
    s.place AS candidate_count
  FROM site_answers AS s
  LEFT JOIN (
    SELECT
      q.file_id,
      q.site_id,
      collect_set(q.meaning) AS meanings,
      max(q.status = 'internal') AS has_internal,
      max(q.status = 'external') AS has_external
    FROM rel_callsite_qname AS q
    GROUP BY q.file_id, q.site_id
  ) AS own ON own.file_id = s.file_id AND own.site_id = s.site_id
  WHERE s.call_id IS NOT NULL
    AND (s.role = 'symbol_call' OR (s.role = 'symbol_implicit_call' AND s.status = 'internal'))
) AS r
