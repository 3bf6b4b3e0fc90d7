-- Calls that decorators, `with` and `for` make; `raise` makes one only if what it raises turns out to be a class.
-- output: asking_sites
SELECT
  c.file_id,
  c.path,
  CASE WHEN c.kind = 'raise' THEN 'raise' ELSE 'implicit_call' END AS role,
  concat('c:', c.file_id, ':i', c.implicit_no) AS site_id,
  c.ask_no AS ask_no,
  c.bstart,
  c.bend,
  c.line_start AS line,
  coalesce(concat('d:', c.file_id, ':', c.caller_key), concat('m:', c.file_id)) AS code_id
FROM cst_implicit_calls AS c
WHERE c.ask_no IS NOT NULL
