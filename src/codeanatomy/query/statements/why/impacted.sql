-- Files that the build rebuilt or deleted, and why.
SELECT path, reason_kind, reason_ref, caused_by_path, tables
FROM inc_impacted_files
