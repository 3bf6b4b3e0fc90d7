-- Modules that imports name.
-- output: asking_sites
SELECT
  i.file_id,
  i.path,
  'import_module' AS role,
  concat('i:', i.file_id, ':', i.import_no) AS site_id,
  i.module_ask_no AS ask_no,
  i.bstart,
  i.bend,
  i.line_start AS line
FROM cst_imports AS i
WHERE i.module_ask_no IS NOT NULL
