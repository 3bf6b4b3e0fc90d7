-- Classes and their bases, under dotted names.
-- output: inherits
SELECT
  e.file_id,
  derived.qname AS class,
  base.qname AS base,
  e.path,
  base.node_kind = 'DEF' AS is_internal
FROM cpg_edges AS e
JOIN cpg_nodes AS derived ON derived.node_id = e.src_id
JOIN cpg_nodes AS base ON base.node_id = e.dst_id
WHERE e.edge_kind = 'INHERITS'
