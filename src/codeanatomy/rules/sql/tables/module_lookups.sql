-- Modules that the answers of a file looked at: if one of them changes, the file is answered again.
-- output: module_lookups
SELECT DISTINCT
  a.file_id,
  a.path,
  explode(a.trail) AS looked_at
FROM answers AS a
