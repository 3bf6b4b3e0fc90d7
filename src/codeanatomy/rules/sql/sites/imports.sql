-- What imports bind; a star binds what it finds.
-- output: asking_sites
SELECT
  i.file_id,
  i.path,
  'import' AS role,
  concat('i:', i.file_id, ':', i.import_no) AS site_id,
  i.ask_no AS ask_no,
  i.bstart,
  i.bend,
  i.line_start AS line,
  i.kind AS ctx
FROM cst_imports AS i
WHERE i.ask_no IS NOT NULL AND NOT i.is_star
