-- A module or a definition contains the calls written directly in it.
-- output: cpg_edges
-- kind: CONTAINS
SELECT
  concat('CONTAINS:c:', x.file_id, ':', x.call_no) AS edge_id,
  coalesce(concat('d:', x.file_id, ':', x.def_key), concat('m:', x.file_id)) AS src_id,
  concat('c:', x.file_id, ':', x.call_no) AS dst_id,
  x.file_id,
  x.path,
  x.bstart,
  x.bend
FROM cst_callsites AS x
