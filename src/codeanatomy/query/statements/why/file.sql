-- The file, if the build has it.
SELECT path
FROM repo_files
WHERE path = $path
