-- Modules inside a package are attributes of it.
-- output: dim_exported_defs
SELECT
  m.file_id,
  m.path,
  p.module_fqn AS module,
  regexp_extract(m.module_fqn, '[^.]*$', 0) AS name,
  'submodule' AS kind,
  m.module_fqn AS target,
  FALSE AS in_all,
  substr(sha2(concat_ws(' ', 'submodule', m.module_fqn), 256), 1, 24) AS identity_hash
FROM py_module_index AS m
JOIN py_module_index AS p ON p.module_fqn = regexp_replace(m.module_fqn, '[.][^.]*$', '')
WHERE p.is_init AND m.module_fqn LIKE '%.%'
