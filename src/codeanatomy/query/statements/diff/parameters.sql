-- Parameters of each definition, as they are written.
SELECT
  node_id,
  string_agg(
    -- where the keyword-only ones begin, unless `*args` is before them
    CASE WHEN subkind = 'keyword_only' AND previous NOT IN ('keyword_only', 'var_positional') THEN '*, ' ELSE '' END
    || CASE subkind WHEN 'var_positional' THEN '*' WHEN 'var_keyword' THEN '**' ELSE '' END
    || name
    || coalesce(': ' || annotation, '')
    || coalesce(' = ' || default_value, '')
    || CASE WHEN subkind = 'positional_only' AND next <> 'positional_only' THEN ', /' ELSE '' END,
    ', ' ORDER BY ordinal
  ) AS written
FROM (
  SELECT
    parameter.parent_id AS node_id,
    parameter.ordinal,
    parameter.subkind,
    parameter.name,
    parameter.text AS default_value,
    annotation.text AS annotation,
    lag(parameter.subkind, 1, 'none') OVER positions AS previous,
    lead(parameter.subkind, 1, 'none') OVER positions AS next
  FROM cpg_nodes AS parameter
  LEFT JOIN cpg_edges AS edge ON edge.edge_kind = 'ANNOTATED_BY' AND edge.src_id = parameter.node_id
  LEFT JOIN cpg_nodes AS annotation ON annotation.node_id = edge.dst_id
  WHERE parameter.node_kind = 'PARAM'
  WINDOW positions AS (PARTITION BY parameter.parent_id ORDER BY parameter.ordinal)
)
GROUP BY node_id
