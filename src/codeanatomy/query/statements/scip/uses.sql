-- Uses of nodes: names, with what they refer to and the variables they are bound to; calls whose name refers to
-- nothing; imported names. `import a.b` binds `a` but names the module `a.b`.
WITH named AS (
  SELECT concat('n:', file_id, ':', ref_no) AS site_id, file_id, path, name_bstart AS bstart, name_bend AS bend,
    CASE ctx WHEN 'store' THEN $write_role WHEN 'load' THEN $read_role ELSE 0 END AS roles
  FROM cst_name_refs
), meant AS (
  SELECT n.*, e.dst_id FROM named AS n
  JOIN cpg_edges AS e ON e.src_id = n.site_id AND e.edge_kind = 'REFERENCES' AND e.confidence >= 0.5
), bound AS (
  SELECT n.*, e.dst_id FROM named AS n
  JOIN cpg_edges AS e ON e.src_id = n.site_id AND e.edge_kind = 'RESOLVES_TO'
), called AS (
  SELECT c.file_id, c.path, c.callee_name_bstart AS bstart, c.callee_name_bend AS bend, $read_role AS roles, e.dst_id
  FROM cst_callsites AS c
  JOIN cpg_edges AS e ON e.src_id = concat('c:', c.file_id, ':', c.call_no) AND e.edge_kind = 'CALLS'
  WHERE c.callee_name_bstart IS NOT NULL
    AND e.confidence >= 0.5
    AND NOT EXISTS (SELECT 1 FROM meant AS m WHERE m.file_id = c.file_id AND m.bstart = c.callee_name_bstart)
), aliases AS (
  SELECT concat('i:', file_id, ':', import_no) AS site_id, file_id, path, kind, bstart, bend, asname,
    CASE
      WHEN asname IS NULL THEN bend
      ELSE bstart + octet_length(encode(coalesce(name, module)))
    END AS name_bend,
    bend - octet_length(encode(asname)) AS asname_bstart
  FROM cst_imports
  WHERE NOT is_star
), imported AS (
  SELECT a.*, e.dst_id FROM aliases AS a
  JOIN cpg_edges AS e ON e.src_id = a.site_id AND e.edge_kind = 'IMPORT_BINDS'
  WHERE a.kind = 'from' OR a.asname IS NOT NULL
  UNION
  SELECT a.*, r.target_id FROM aliases AS a JOIN rel_import_module AS r ON r.site_id = a.site_id
  WHERE a.kind = 'import' AND a.asname IS NULL
)
SELECT path, bstart, bend, dst_id, bit_or(roles) AS roles
FROM (
  SELECT path, bstart, bend, dst_id, roles FROM meant
  UNION ALL SELECT path, bstart, bend, dst_id, roles FROM bound
  UNION ALL SELECT path, bstart, bend, dst_id, roles FROM called
  UNION ALL SELECT path, bstart, name_bend, dst_id, $import_role FROM imported
  UNION ALL SELECT path, asname_bstart, bend, dst_id, $import_role FROM imported WHERE asname IS NOT NULL
)
GROUP BY path, bstart, bend, dst_id
ORDER BY path, bstart, bend, dst_id
