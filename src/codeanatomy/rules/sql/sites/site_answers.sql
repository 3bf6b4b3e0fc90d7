-- Every site with every answer to its question: the only rule that joins questions and answers.
-- output: site_answers
SELECT
  s.file_id,
  s.path,
  s.role,
  s.site_id,
  s.bstart,
  s.bend,
  s.line,
  s.code_id,
  s.ctx,
  s.place,
  a.ask_no,
  a.candidate,
  a.status,
  a.kind,
  a.target_id,
  a.target_name,
  a.is_named,
  a.call_id,
  a.set_id,
  a.resolution_method,
  a.confidence,
  a.call_agreement,
  a.name_agreement,
  a.named_count,
  a.call_count
FROM asking_sites AS s
JOIN answers AS a ON a.file_id = s.file_id AND a.ask_no = s.ask_no
WHERE a.status NOT IN ('unknown', 'limit')
