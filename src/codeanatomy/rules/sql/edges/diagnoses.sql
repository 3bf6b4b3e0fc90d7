-- A diagnostic and the innermost definition, or the module, that it is about.
-- output: cpg_edges
-- kind: DIAGNOSES
-- method: exact_span
-- confidence: 1.0
-- needs: documents
SELECT
  concat('DIAGNOSES:g:', g.file_id, ':', g.diagnostic_no) AS edge_id,
  concat('g:', g.file_id, ':', g.diagnostic_no) AS src_id,
  coalesce(concat('d:', g.file_id, ':', g.def_key), concat('m:', g.file_id)) AS dst_id,
  g.file_id,
  g.path,
  g.bstart,
  g.bend
FROM diagnostics AS g
