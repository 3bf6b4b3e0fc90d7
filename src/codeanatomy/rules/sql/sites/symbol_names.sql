-- Uses of names that an indexer knows the meaning of.
-- output: asking_sites
-- needs: documents
SELECT
  o.file_id,
  o.path,
  'symbol_name' AS role,
  concat('n:', o.file_id, ':', o.ref_no) AS site_id,
  o.ask_no AS ask_no,
  o.bstart,
  o.bend,
  o.line_start AS line,
  coalesce(concat('d:', o.file_id, ':', o.caller_key), concat('m:', o.file_id)) AS code_id,
  o.alignment AS ctx,
  o.alternatives AS place
FROM scip_occurrences AS o
WHERE o.ask_no IS NOT NULL AND o.ref_no IS NOT NULL
