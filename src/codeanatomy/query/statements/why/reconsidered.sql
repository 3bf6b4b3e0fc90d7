-- The changed module because of which a file was analysed again, although it did not have to be rebuilt.
SELECT looked_at AS module, caused_by_path
FROM inc_reconsidered_files
WHERE path = $path
