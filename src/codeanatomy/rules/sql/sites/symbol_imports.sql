-- Imported aliases that an indexer knows the meaning of.
-- output: asking_sites
-- needs: documents
SELECT
  o.file_id,
  o.path,
  'symbol_import' AS role,
  concat('i:', o.file_id, ':', o.import_no) AS site_id,
  o.ask_no AS ask_no,
  o.bstart,
  o.bend,
  o.line_start AS line,
  o.alignment AS ctx,
  o.alternatives AS place
FROM scip_occurrences AS o
WHERE o.ask_no IS NOT NULL AND o.import_no IS NOT NULL
