-- The keyword arguments of a call, by name, in order.
-- output: cpg_props_json
SELECT
  'node' AS entity_kind,
  concat('c:', c.file_id, ':', c.call_no) AS entity_id,
  c.file_id,
  c.path,
  'keywords' AS prop_key,
  to_json(c.keywords) AS value_json
FROM cst_callsites AS c
WHERE size(c.keywords) > 0
