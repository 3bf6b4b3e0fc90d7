-- Calls for which the repository's own answers and the semantic document have nothing in common.
-- output: disagreements
SELECT
  own.file_id,
  own.path,
  own.line,
  caller.qname AS caller,
  CAST(array_sort(collect_set(own_target.qname)) AS ARRAY<STRING>) AS own,
  CAST(array_sort(collect_set(semantic_target.qname)) AS ARRAY<STRING>) AS semantic,
  max(own.confidence) AS own_confidence,
  max(semantic.confidence) AS semantic_confidence
FROM rel_callsite_qname AS own
JOIN rel_callsite_symbol AS semantic ON semantic.file_id = own.file_id AND semantic.site_id = own.site_id
JOIN cpg_nodes AS caller ON caller.node_id = own.code_id
JOIN cpg_nodes AS own_target ON own_target.node_id = own.target_id
JOIN cpg_nodes AS semantic_target ON semantic_target.node_id = semantic.target_id
GROUP BY own.file_id, own.path, own.line, own.site_id, caller.qname
HAVING max(CASE WHEN semantic.agreement = 'agrees' THEN 1 ELSE 0 END) = 0
