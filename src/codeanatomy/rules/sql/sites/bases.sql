-- Bases of classes; keywords such as `metaclass` are none.
-- output: asking_sites
SELECT
  b.file_id,
  b.path,
  'base' AS role,
  concat('d:', b.file_id, ':', b.def_key) AS site_id,
  b.ask_no AS ask_no,
  b.bstart,
  b.bend,
  b.position AS place
FROM cst_bases AS b
WHERE b.ask_no IS NOT NULL AND b.keyword IS NULL
