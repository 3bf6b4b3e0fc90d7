-- Imported aliases: `import a.b as c, d` is two of them.
-- output: cpg_nodes
-- kind: IMPORT
SELECT
  concat('i:', i.file_id, ':', i.import_no) AS node_id,
  i.file_id,
  i.path,
  coalesce(concat('d:', i.file_id, ':', i.def_key), concat('m:', i.file_id)) AS parent_id,
  i.bstart,
  i.bend,
  i.line_start,
  i.line_end,
  i.col_start,
  coalesce(i.bound_name, '*') AS name,
  i.kind AS subkind,
  CASE
    WHEN i.kind = 'import' THEN i.module
    ELSE concat(repeat('.', i.level), coalesce(concat(i.module, '.'), ''), coalesce(i.name, '*'))
  END AS text,
  i.level AS ordinal
FROM cst_imports AS i
