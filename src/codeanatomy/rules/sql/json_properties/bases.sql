-- The arguments of a class, as their source texts, keywords and stars included.
-- output: cpg_props_json
SELECT
  'node' AS entity_kind,
  concat('d:', d.file_id, ':', d.def_key) AS entity_id,
  d.file_id,
  d.path,
  'bases' AS prop_key,
  to_json(d.bases) AS value_json
FROM cst_defs AS d
WHERE size(d.bases) > 0
