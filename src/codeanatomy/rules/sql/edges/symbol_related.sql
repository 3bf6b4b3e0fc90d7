-- How symbols relate.
-- output: cpg_edges
-- kind: SYMBOL_RELATED
-- confidence: 1.0
-- needs: documents
SELECT
  concat('SYMBOL_RELATED:', substr(sha2(r.symbol, 256), 1, 24), ':', substr(sha2(r.related_symbol, 256), 1, 24)) AS edge_id,
  concat('s:', substr(sha2(r.symbol, 256), 1, 24)) AS src_id,
  concat('s:', substr(sha2(r.related_symbol, 256), 1, 24)) AS dst_id,
  r.file_id,
  r.path,
  CASE
    WHEN r.is_implementation THEN 'implementation'
    WHEN r.is_type_definition THEN 'type_definition'
    WHEN r.is_definition THEN 'definition'
    ELSE 'reference'
  END AS resolution_method
FROM scip_symbol_relationships AS r
