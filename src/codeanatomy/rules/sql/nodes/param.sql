-- Parameters, named by their definition and place so that other files may point to them.
-- output: cpg_nodes
-- kind: PARAM
SELECT
  concat('p:', p.file_id, ':', p.def_key, ':', p.position) AS node_id,
  p.file_id,
  p.path,
  concat('d:', p.file_id, ':', p.def_key) AS parent_id,
  p.bstart,
  p.bend,
  p.line_start,
  p.line_end,
  p.col_start,
  p.name,
  p.kind AS subkind,
  p.default AS text,
  p.position AS ordinal
FROM cst_params AS p
