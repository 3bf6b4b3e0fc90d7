"""Two builds on one session: neither sees what the other's rules read."""

from concurrent.futures import ThreadPoolExecutor

import codeanatomy as ca
from tests.repositories import SHOP, write_repository


def test_two_repositories_built_at_once_on_one_session(tmp_path, spark):
    shop = write_repository(tmp_path / "shop")
    other = write_repository(
        tmp_path / "other",
        {"other/__init__.py": "", "other/a.py": "def f(): pass\n", "other/b.py": "from other.a import f\nf()\n"},
    )

    def build(root):
        return ca.build(ca.BuildRequest(root, index="none"), spark=spark)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, (shop, other)))
        (shop / "shop/prices.py").write_text(SHOP["shop/prices.py"] + "\n\ndef more(): return price_of('x')\n")
        (other / "other/a.py").write_text("def f(): return g()\ndef g(): pass\n")
        assert [result.mode for result in pool.map(build, (shop, other))] == ["incremental", "incremental"]
    for root in (shop, other):
        assert ca.verify(ca.BuildRequest(root), spark=spark).equal
    paths = ca.open(other).sql("SELECT DISTINCT path FROM cpg_nodes WHERE path IS NOT NULL ORDER BY ALL").to_pylist()
    assert [row["path"] for row in paths] == ["other/__init__.py", "other/a.py", "other/b.py"]
