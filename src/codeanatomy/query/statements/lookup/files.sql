-- The contents and encodings that files had when they were built.
SELECT path, content_id, encoding
FROM repo_files
WHERE list_contains($paths, path)
