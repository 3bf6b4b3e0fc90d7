-- Files that the build rebuilt or deleted, and why.
SELECT path, reason_kind, reason_ref, caused_by_path, tables, rows_changed
FROM inc_impacted_files
