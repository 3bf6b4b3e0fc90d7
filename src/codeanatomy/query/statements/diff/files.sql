-- Files that were added, removed or modified.
SELECT
  coalesce(former.path, latter.path) AS path,
  CASE WHEN former.path IS NULL THEN 'added' WHEN latter.path IS NULL THEN 'removed' ELSE 'modified' END AS change
FROM before.repo_files AS former
FULL JOIN after.repo_files AS latter ON latter.path = former.path
WHERE former.path IS NULL OR latter.path IS NULL OR latter.content_id IS DISTINCT FROM former.content_id
ORDER BY path
