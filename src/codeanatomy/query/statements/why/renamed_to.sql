-- The present path of a file that was renamed in the build.
SELECT path
FROM diff_report
WHERE previous = $path AND change_kind = 'renamed'
