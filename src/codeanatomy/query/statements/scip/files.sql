-- Files that could be read, with their modules and the docstrings of these.
SELECT f.file_id, f.path, m.module_fqn, f.line_starts, d.text AS documentation
FROM repo_files AS f
JOIN py_module_index AS m ON m.file_id = f.file_id
LEFT JOIN docstrings AS d ON d.file_id = f.file_id AND d.def_key IS NULL
WHERE f.line_starts IS NOT NULL
ORDER BY f.path
