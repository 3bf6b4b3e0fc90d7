-- A use of a name and what it refers to, wherever that is.
-- output: cpg_edges
-- kind: REFERENCES
SELECT
  concat('REFERENCES:', r.site_id, ':', r.candidate) AS edge_id,
  r.site_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  r.bstart,
  r.bend,
  r.line,
  r.code_id,
  r.resolution_method,
  r.confidence,
  r.candidate_count,
  r.ambiguity_group_id
FROM rel_name_qname AS r
