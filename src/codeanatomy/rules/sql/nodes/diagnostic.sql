-- Diagnostics of the indexer.
-- output: cpg_nodes
-- kind: DIAGNOSTIC
-- needs: documents
SELECT
  concat('g:', g.file_id, ':', g.diagnostic_no) AS node_id,
  g.file_id,
  g.path,
  coalesce(concat('d:', g.file_id, ':', g.def_key), concat('m:', g.file_id)) AS parent_id,
  g.bstart,
  g.bend,
  g.line_start,
  g.code AS name,
  g.severity AS subkind,
  g.message AS text
FROM diagnostics AS g
