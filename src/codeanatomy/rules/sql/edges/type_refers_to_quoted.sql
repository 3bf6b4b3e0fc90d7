-- An annotation in quotes and the class it names.
-- output: cpg_edges
-- kind: TYPE_REFERS_TO
SELECT
  concat('TYPE_REFERS_TO:', s.site_id, ':quoted:', s.candidate) AS edge_id,
  s.site_id AS src_id,
  s.target_id AS dst_id,
  s.file_id,
  s.path,
  s.bstart,
  s.bend,
  s.resolution_method,
  s.confidence,
  s.named_count AS candidate_count,
  CASE WHEN s.named_count > 1 THEN concat('a:', s.file_id, ':', s.ask_no) END AS ambiguity_group_id
FROM site_answers AS s
WHERE s.role = 'quoted_type' AND s.is_named AND s.target_id IS NOT NULL
