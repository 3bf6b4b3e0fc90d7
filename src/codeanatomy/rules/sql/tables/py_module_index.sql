-- The module name each file answers to; decided from the set of paths alone.
-- output: py_module_index
SELECT s.file_id, s.path, s.module_fqn, s.is_init, s.is_stub, s.root
FROM scan_files AS s
