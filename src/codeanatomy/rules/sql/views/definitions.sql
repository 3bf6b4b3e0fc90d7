-- Definitions under dotted names.
-- output: definitions
SELECT
  n.file_id,
  n.qname AS name,
  n.subkind AS kind,
  n.path,
  n.line_start AS line,
  n.line_end,
  n.node_id
FROM cpg_nodes AS n
WHERE n.node_kind = 'DEF'
