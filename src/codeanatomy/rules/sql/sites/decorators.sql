-- What decorates a definition; of `@f(x)`, that is `f`.
-- output: asking_sites
SELECT
  d.file_id,
  d.path,
  'decorator' AS role,
  concat('d:', d.file_id, ':', d.def_key) AS site_id,
  d.ask_no AS ask_no,
  d.bstart,
  d.bend,
  d.position AS place
FROM cst_decorators AS d
WHERE d.ask_no IS NOT NULL
