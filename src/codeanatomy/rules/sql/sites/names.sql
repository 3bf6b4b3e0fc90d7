-- Uses of names and attributes.
-- output: asking_sites
SELECT
  r.file_id,
  r.path,
  'name' AS role,
  concat('n:', r.file_id, ':', r.ref_no) AS site_id,
  r.ask_no AS ask_no,
  r.bstart,
  r.bend,
  r.line_start AS line,
  coalesce(concat('d:', r.file_id, ':', r.caller_key), concat('m:', r.file_id)) AS code_id,
  CASE WHEN r.is_attribute THEN concat('attribute_', r.ctx) ELSE r.ctx END AS ctx,
  r.type_no AS place
FROM cst_name_refs AS r
WHERE r.ask_no IS NOT NULL
