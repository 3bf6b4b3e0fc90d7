-- The decorators of a definition, as their source texts, outermost first.
-- output: cpg_props_json
SELECT
  'node' AS entity_kind,
  concat('d:', d.file_id, ':', d.def_key) AS entity_id,
  d.file_id,
  d.path,
  'decorators' AS prop_key,
  to_json(d.decorators) AS value_json
FROM cst_defs AS d
WHERE size(d.decorators) > 0
