-- Patterns are rows of the build, not text in the rules: another description changes this table and no other.
-- output: entry_point_patterns
SELECT
  '__global__' AS file_id,
  g.pattern_no,
  g.kind,
  g.matcher,
  g.name,
  g.member,
  g.member_dots,
  g.path,
  g.path_like,
  g.position,
  g.keyword,
  g.detail_position,
  g.detail_keyword,
  g.makes,
  g.evidence,
  g.detail,
  g.confidence
FROM given_patterns AS g
