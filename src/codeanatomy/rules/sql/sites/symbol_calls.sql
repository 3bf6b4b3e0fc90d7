-- Calls that an indexer knows the target of: written ones, those that statements make, and properties.
-- output: asking_sites
-- needs: documents
SELECT
  o.file_id,
  o.path,
  CASE WHEN o.call_no IS NOT NULL THEN 'symbol_call' ELSE 'symbol_implicit_call' END AS role,
  CASE
    WHEN o.call_no IS NOT NULL THEN concat('c:', o.file_id, ':', o.call_no)
    WHEN o.implicit_no IS NOT NULL THEN concat('c:', o.file_id, ':i', o.implicit_no)
    ELSE concat('n:', o.file_id, ':', o.ref_no)
  END AS site_id,
  o.ask_no AS ask_no,
  o.bstart,
  o.bend,
  o.line_start AS line,
  coalesce(concat('d:', o.file_id, ':', o.caller_key), concat('m:', o.file_id)) AS code_id,
  o.alignment AS ctx,
  o.alternatives AS place
FROM scip_occurrences AS o
WHERE o.ask_no IS NOT NULL
  AND (o.call_no IS NOT NULL OR o.implicit_no IS NOT NULL OR (o.role = 'call' AND o.ref_no IS NOT NULL))
