-- Star imports: they offer whatever they bring.
-- output: dim_exported_defs
SELECT
  v.file_id,
  v.path,
  m.module_fqn AS module,
  '*' AS name,
  'star' AS kind,
  v.value AS target,
  FALSE AS in_all,
  substr(sha2(concat_ws(' ', '*', v.name, v.value), 256), 1, 24) AS identity_hash
FROM sym_values AS v
JOIN py_module_index AS m ON m.file_id = v.file_id
WHERE v.slot = 'star'
