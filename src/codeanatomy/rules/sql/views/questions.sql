-- Questions, one row each, with what came of them.
-- output: questions
SELECT
  a.file_id,
  a.path,
  a.ask_no,
  a.question,
  CASE WHEN a.named_count > 1 THEN 'ambiguous' ELSE a.status END AS status,
  a.named_count AS candidate_count,
  a.outcome,
  a.trail
FROM answers AS a
WHERE a.candidate = 0
