-- Everything a class inherits from. A chain of bases leads through many files, so no file's rows alone can tell: this is
-- computed when read, over the edges of all files. Chains are doubled five times, so they reach 32 bases deep; without
-- recursion, neither a circle of bases nor a lattice of them takes long.
-- output: class_ancestors
WITH upto_1 AS (
  SELECT DISTINCT e.file_id, e.src_id AS class_id, e.dst_id AS base_id, 1 AS distance, e.confidence
  FROM cpg_edges AS e
  WHERE e.edge_kind = 'INHERITS'
),
upto_2 AS (
  SELECT file_id, class_id, base_id, distance, confidence FROM upto_1
  UNION
  SELECT a.file_id, a.class_id, b.base_id, a.distance + b.distance AS distance, least(a.confidence, b.confidence) AS confidence
  FROM upto_1 AS a JOIN upto_1 AS b ON b.class_id = a.base_id
),
upto_4 AS (
  SELECT file_id, class_id, base_id, distance, confidence FROM upto_2
  UNION
  SELECT a.file_id, a.class_id, b.base_id, a.distance + b.distance AS distance, least(a.confidence, b.confidence) AS confidence
  FROM upto_2 AS a JOIN upto_2 AS b ON b.class_id = a.base_id
),
upto_8 AS (
  SELECT file_id, class_id, base_id, distance, confidence FROM upto_4
  UNION
  SELECT a.file_id, a.class_id, b.base_id, a.distance + b.distance AS distance, least(a.confidence, b.confidence) AS confidence
  FROM upto_4 AS a JOIN upto_4 AS b ON b.class_id = a.base_id
),
upto_16 AS (
  SELECT file_id, class_id, base_id, distance, confidence FROM upto_8
  UNION
  SELECT a.file_id, a.class_id, b.base_id, a.distance + b.distance AS distance, least(a.confidence, b.confidence) AS confidence
  FROM upto_8 AS a JOIN upto_8 AS b ON b.class_id = a.base_id
),
upto_32 AS (
  SELECT file_id, class_id, base_id, distance, confidence FROM upto_16
  UNION
  SELECT a.file_id, a.class_id, b.base_id, a.distance + b.distance AS distance, least(a.confidence, b.confidence) AS confidence
  FROM upto_16 AS a JOIN upto_16 AS b ON b.class_id = a.base_id
)
SELECT
  r.file_id,
  r.class_id,
  n.qname AS ancestor,
  min(r.distance) AS distance,
  max(r.confidence) AS confidence
FROM upto_32 AS r
JOIN cpg_nodes AS n ON n.node_id = r.base_id AND n.qname IS NOT NULL
GROUP BY r.file_id, r.class_id, n.qname
