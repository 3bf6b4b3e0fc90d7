-- Modules that the answers of a file looked at: what must be asked again when one of them changes.
-- output: module_lookups
SELECT DISTINCT
  a.file_id,
  a.path,
  explode(a.trail) AS looked_at
FROM answers AS a
