-- Definitions and variables, and the symbol whose definition stands at their name.
-- output: rel_def_symbol
-- method: exact_span
-- confidence: 1.0
-- needs: documents
SELECT
  i.file_id,
  i.path,
  coalesce(concat('d:', i.file_id, ':', i.def_key), concat('b:', i.file_id, ':', i.binding_key)) AS site_id,
  concat('s:', substr(sha2(i.symbol, 256), 1, 24)) AS target_id,
  i.bstart,
  i.bend,
  i.line_start AS line,
  0 AS candidate,
  CAST(1.0 AS DOUBLE) AS score,
  1 AS candidate_count,
  1 AS rule_priority
FROM scip_symbol_information AS i
WHERE i.def_key IS NOT NULL OR i.binding_key IS NOT NULL
