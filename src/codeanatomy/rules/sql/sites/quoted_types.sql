-- Annotations in quotes.
-- output: asking_sites
SELECT
  t.file_id,
  t.path,
  'quoted_type' AS role,
  concat('t:', t.file_id, ':', t.type_no) AS site_id,
  t.ask_no AS ask_no,
  t.bstart,
  t.bend,
  t.line_start AS line
FROM cst_type_exprs AS t
WHERE t.ask_no IS NOT NULL
