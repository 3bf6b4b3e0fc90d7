-- Calls as written.
-- output: asking_sites
SELECT
  c.file_id,
  c.path,
  'call' AS role,
  concat('c:', c.file_id, ':', c.call_no) AS site_id,
  c.ask_no AS ask_no,
  c.bstart,
  c.bend,
  c.line_start AS line,
  coalesce(concat('d:', c.file_id, ':', c.caller_key), concat('m:', c.file_id)) AS code_id
FROM cst_callsites AS c
WHERE c.ask_no IS NOT NULL
