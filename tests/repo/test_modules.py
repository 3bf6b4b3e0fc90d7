"""The dotted name each file answers to."""

import pytest

from codeanatomy.repo.modules import ModuleName, module_names


def names(*paths, roots=()):
    return {name.path: name.module_fqn for name in module_names(paths, roots)}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a.py", "a"),
        ("pkg/__init__.py", "pkg"),
        ("pkg/sub/m.py", "pkg.sub.m"),
        ("pkg/gui.pyw", "pkg.gui"),
        ("src/pkg/m.py", "pkg.m"),
        ("lib/src/pkg/m.py", "pkg.m"),
        ("src/vendor/src/pkg/m.py", "pkg.m"),
        ("src.py", "src"),
        ("__init__.py", "__init__"),
        ("src/__main__.py", "__main__"),
        ("bin/tool", "bin.tool"),
        ("my-scripts/2to3.py", "my-scripts.2to3"),
        ("pkg/a.b.py", "pkg.a.b"),
        ("foo-stubs/sub/m.pyi", "foo.sub.m"),
        ("src/foo-stubs/__init__.pyi", "foo"),
        ("pkg/foo-stubs/m.pyi", "pkg.foo-stubs.m"),
        ("-stubs/m.pyi", "-stubs.m"),
        ("script/__init__", "script.__init__"),
    ],
)
def test_the_name_of_one_file(path, name):
    assert names(path) == {path: name}


def test_what_else_a_name_tells():
    assert module_names(["src/p/__init__.pyi", "src/p/m.py", "x.pyi"]) == (
        ModuleName("src/p/__init__.pyi", "p", is_init=True, is_stub=True, root="src"),
        ModuleName("src/p/m.py", "p.m", is_init=False, is_stub=False, root="src"),
        ModuleName("x.pyi", "x", is_init=False, is_stub=True, root=""),
    )


@pytest.mark.parametrize("init", ["__init__.py", "__init__.pyi"])
def test_src_is_no_root_when_it_is_a_package_or_in_one(init):
    assert names(f"src/{init}", "src/m.py")["src/m.py"] == "src.m"
    assert names(f"pkg/{init}", "pkg/src/m.py")["pkg/src/m.py"] == "pkg.src.m"
    assert names(f"src/pkg/{init}", "src/pkg/src/m.py")["src/pkg/src/m.py"] == "pkg.src.m"


def test_the_top_is_never_a_package():
    assert names("__init__.py", "src/pkg/m.py") == {"__init__.py": "__init__", "src/pkg/m.py": "pkg.m"}


def test_the_longest_configured_root_wins():
    roots = ("lib", "lib/vendored", "library")
    assert names("lib/a.py", "lib/vendored/b.py", "lib/vendored2/c.py", "src/d.py", roots=roots) == {
        "lib/a.py": "a",
        "lib/vendored/b.py": "b",
        "lib/vendored2/c.py": "vendored2.c",
        "src/d.py": "d",
    }
    assert names("src/a.py", roots=("",)) == {"src/a.py": "src.a"}


def test_names_do_not_depend_on_the_order_of_paths():
    paths = ["pkg/src/m.py", "pkg/__init__.py", "src/a.py"]
    assert set(module_names(paths)) == set(module_names(paths[::-1]))
    assert [name.path for name in module_names(paths)] == paths
