-- A definition or variable and its symbol.
-- output: cpg_edges
-- kind: DEFINES
-- needs: documents
SELECT
  concat('DEFINES:', r.site_id, ':', r.target_id) AS edge_id,
  r.site_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  r.bstart,
  r.bend,
  r.resolution_method,
  r.confidence
FROM rel_def_symbol AS r
