-- Every class inherits from `object`, whether its source says so or not.
-- output: class_ancestors
-- confidence: 1.0
SELECT n.file_id, n.node_id AS class_id, '<builtin>.object' AS ancestor, 0 AS distance
FROM cpg_nodes AS n
WHERE n.node_kind = 'DEF' AND n.subkind = 'class'
