-- Definitions; a container comes before what it contains. A lambda is named by its keyword.
SELECT
  d.file_id, d.def_key, d.container_key, d.kind, d.name, d.ordinal, d.bstart, d.bend,
  coalesce(d.name_bstart, d.bstart) AS name_bstart,
  coalesce(d.name_bend, d.bstart + length('lambda')) AS name_bend,
  t.text AS documentation
FROM cst_defs AS d
LEFT JOIN docstrings AS t ON t.file_id = d.file_id AND t.def_key = d.def_key
ORDER BY d.file_id, d.def_no
