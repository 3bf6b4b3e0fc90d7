-- A use of a name and what only the semantic document says it refers to.
-- output: cpg_edges
-- kind: REFERENCES
-- needs: documents
SELECT
  concat('REFERENCES:', r.site_id, ':s', -r.ask_no, ':', r.candidate) AS edge_id,
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
FROM rel_name_symbol AS r
WHERE r.agreement <> 'agrees'
