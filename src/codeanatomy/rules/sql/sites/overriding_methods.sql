-- Methods, which may hide one of a base.
-- output: asking_sites
SELECT
  d.file_id,
  d.path,
  'override' AS role,
  concat('d:', d.file_id, ':', d.def_key) AS site_id,
  d.overrides_ask_no AS ask_no,
  d.bstart,
  d.bend,
  d.line_start AS line
FROM cst_defs AS d
WHERE d.overrides_ask_no IS NOT NULL
