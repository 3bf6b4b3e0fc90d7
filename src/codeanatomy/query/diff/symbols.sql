-- What is called by one name in one file; there are several when a name is defined again, as by a property's setter.
-- How long its source is tells of an edited body, for which the graph has nothing else.
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
