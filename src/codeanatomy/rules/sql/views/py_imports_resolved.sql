-- Imports with the file they lead to.
-- output: py_imports_resolved
SELECT
  i.file_id,
  i.path,
  i.import_no,
  importer.module_fqn AS importer,
  coalesce(imported.module_fqn, a.target_name) AS module,
  i.name,
  i.is_star,

  imported.file_id AS resolved_file_id,
  a.status,
  i.line_start
FROM cst_imports AS i
JOIN answers AS a ON a.file_id = i.file_id AND a.ask_no = i.module_ask_no
JOIN py_module_index AS importer ON importer.file_id = i.file_id
LEFT JOIN py_module_index AS imported ON concat('m:', imported.file_id) = a.target_id
WHERE a.target_id IS NOT NULL
