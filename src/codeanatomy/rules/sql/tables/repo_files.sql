-- Files of the snapshot, with the encoding and lines of their content.
-- output: repo_files
SELECT
  s.file_id,
  s.path,
  s.content_id,
  s.size,
  CASE WHEN s.status = 'ok' AND c.encoding IS NULL THEN 'undecodable' ELSE s.status END AS status,
  s.detail,
  c.encoding,
  CASE WHEN c.encoding IS NOT NULL THEN size(c.line_starts) END AS line_count,
  CASE WHEN c.encoding IS NOT NULL THEN c.line_starts END AS line_starts
FROM scan_files AS s
LEFT JOIN contents AS c ON c.content_id = s.content_id
