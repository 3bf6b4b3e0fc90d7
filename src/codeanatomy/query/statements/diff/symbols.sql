-- One row per name and file; a name may be defined several times, as by a property's setter. The length of the source
-- stands for the body, of which the graph has nothing else.
SELECT
  name,
  path,
  last(kind ORDER BY ordinal) AS last_kind,
  string_agg(kind, '; ' ORDER BY ordinal) AS kind,
  string_agg(if(is_async, 'yes', 'no'), '; ' ORDER BY ordinal) FILTER (has_code) AS async,
  string_agg(parameters, '; ' ORDER BY ordinal) FILTER (has_code) AS parameters,
  string_agg(returned, '; ' ORDER BY ordinal) FILTER (has_code) AS returns,
  string_agg(bytes || ' bytes', '; ' ORDER BY ordinal) FILTER (has_code) AS source
FROM definitions
GROUP BY name, path
