-- Names of modules and members of classes.
-- output: dim_exported_defs
SELECT
  v.file_id,
  v.path,
  m.module_fqn AS module,
  v.qualname AS container,
  v.name,
  v.kind,
  v.value AS target,
  x.name IS NOT NULL AS in_all,
  substr(sha2(concat_ws(' ', v.qualname, v.name, v.kind, v.value), 256), 1, 24) AS identity_hash,
  v.shape AS shape_hash
FROM sym_values AS v
JOIN py_module_index AS m ON m.file_id = v.file_id
LEFT JOIN (SELECT DISTINCT x.file_id, x.name FROM all_names AS x WHERE x.op = 'add' AND NOT x.name IS NULL) AS x
  ON x.file_id = v.file_id AND x.name = v.name AND v.slot = 'global'
WHERE v.slot IN ('global', 'member', 'attribute')
