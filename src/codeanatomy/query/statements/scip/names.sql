-- Names that nothing in the repository defines, and symbols of an indexer (`text`), which come first.
SELECT
  n.node_id, n.name, n.qname, n.text,
  n.subkind = 'package' OR n.node_id IN (SELECT dst_id FROM cpg_edges WHERE edge_kind = 'IMPORTS') AS is_module
FROM cpg_nodes AS n
WHERE n.node_kind IN ('QNAME', 'SYMBOL')
ORDER BY n.text NULLS LAST, n.node_id
