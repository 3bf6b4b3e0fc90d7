-- Calls that decorators, `with` and `for` make, as far as code of the repository runs: that a loop over a list asks the
-- list for an iterator is of no use to readers. A `with` calls both its methods, so there is no ambiguity.
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
  s.confidence AS score,
  1 AS candidate_count,
  2 AS rule_priority
FROM site_answers AS s
WHERE s.role = 'implicit_call' AND s.call_id IS NOT NULL AND s.status = 'internal'
