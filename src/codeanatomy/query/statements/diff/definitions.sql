-- Modules and definitions, each with its own properties and parameters.
SELECT
  node.node_id,
  node.qname AS name,
  node.path,
  coalesce(node.ordinal, 0) AS ordinal,
  node.subkind AS kind,
  node.subkind IN ('function', 'method', 'lambda') AS has_code,
  coalesce(node.is_async, FALSE) AS is_async,
  '(' || coalesce(parameters.written, '') || ')' AS parameters,
  coalesce(node.text, '-') AS returned,
  node.bend - node.bstart AS bytes
FROM cpg_nodes AS node
LEFT JOIN parameters USING (node_id)
WHERE node.node_kind IN ('DEF', 'MODULE')
