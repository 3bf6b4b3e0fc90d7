-- Every kind of entry point that a build looks for, found or not.
SELECT DISTINCT kind FROM entry_point_patterns ORDER BY kind
