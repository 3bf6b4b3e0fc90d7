-- The signature of a function: its parameters in order, each as an object.
-- output: cpg_props_json
SELECT
  'node' AS entity_kind,
  concat('d:', p.file_id, ':', p.def_key) AS entity_id,
  p.file_id,
  p.path,
  'parameters' AS prop_key,
  to_json(
    array_sort(
      collect_list(
        named_struct(
          'position', p.position,
          'name', p.name,
          'kind', p.kind,
          'default', p.default,
          'annotation', p.annotation
        )
      )
    )
  ) AS value_json
FROM cst_params AS p
GROUP BY p.file_id, p.path, p.def_key
