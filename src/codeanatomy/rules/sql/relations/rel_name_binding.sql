-- Plain names that mean something in their own file. Scopes are a fact of one content, so extraction
-- has already found the binding; attributes and names that leave the file have none.
-- output: rel_name_binding
-- method: scope
-- confidence: 1.0
SELECT
  r.file_id,
  r.path,
  concat('n:', r.file_id, ':', r.ref_no) AS site_id,
  concat('b:', r.file_id, ':', r.binding_key) AS target_id,
  r.bstart,
  r.bend,
  r.line_start AS line,
  0 AS candidate,
  CAST(1.0 AS DOUBLE) AS score,
  1 AS candidate_count,
  1 AS rule_priority
FROM cst_name_refs AS r
WHERE r.binding_key IS NOT NULL
