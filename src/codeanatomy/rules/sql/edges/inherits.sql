-- A class and its bases.
-- output: cpg_edges
-- kind: INHERITS
SELECT
  concat('INHERITS:', r.site_id, ':', r.position, ':', r.candidate) AS edge_id,
  r.site_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  r.bstart,
  r.bend,
  r.resolution_method,
  r.confidence,
  r.candidate_count,
  r.ambiguity_group_id
FROM rel_class_base AS r
