-- Symbols that a file defines.
-- output: cpg_nodes
-- kind: SYMBOL
-- needs: documents
SELECT
  concat('s:', substr(sha2(i.symbol, 256), 1, 24)) AS node_id,
  i.file_id,
  i.path,
  concat('m:', i.file_id) AS parent_id,
  i.bstart,
  i.bend,
  i.line_start,
  i.display_name AS name,
  i.qname,
  i.kind AS subkind,
  i.symbol AS text
FROM scip_symbol_information AS i
WHERE i.file_id <> '__global__'
