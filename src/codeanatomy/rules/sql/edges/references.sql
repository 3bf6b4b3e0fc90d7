-- A use of a name and what it refers to, wherever that is.
-- output: cpg_edges
-- kind: REFERENCES
SELECT
  concat('REFERENCES:', substr(r.site_id, 3), ':', r.target_id) AS edge_id,
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
