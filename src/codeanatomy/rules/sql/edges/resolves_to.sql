-- A name reference and the binding it means, where that is in its own file.
-- output: cpg_edges
-- kind: RESOLVES_TO
SELECT
  concat('RESOLVES_TO:', r.site_id) AS edge_id,
  r.site_id AS src_id,
  r.target_id AS dst_id,
  r.file_id,
  r.path,
  r.bstart,
  r.bend
FROM rel_name_binding AS r
