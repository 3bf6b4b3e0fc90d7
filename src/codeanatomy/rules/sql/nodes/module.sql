-- One module per file. Two files that claim one module name are two modules with one qname.
-- output: cpg_nodes
-- kind: MODULE
SELECT
  concat('m:', m.file_id) AS node_id,
  m.file_id,
  m.path,
  concat('f:', m.file_id) AS parent_id,
  regexp_extract(m.module_fqn, '[^.]*$', 0) AS name,
  m.module_fqn AS qname,
  CASE WHEN m.is_stub THEN 'stub' WHEN m.is_init THEN 'package' ELSE 'module' END AS subkind
FROM py_module_index AS m
