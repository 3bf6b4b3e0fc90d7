"""The mirror: an indexer sees links to the files of the snapshot, laid out by module, and nothing else."""

from collections import Counter

import pytest

from codeanatomy.index.mirror import DEEPEST, Mirror
from codeanatomy.repo.modules import module_names
from tests.repositories import write_repository


def mirrored(tmp_path, *paths, roots=(), others=()):
    """A mirror of the files `paths`, each of which says its path; `others` are there but not in the snapshot."""
    repository = write_repository(tmp_path / "repository", {path: f"# {path}\n" for path in (*paths, *others)})
    mirror = Mirror(repository, tmp_path / "mirror")
    mirror.add(module_names(paths, roots))
    return mirror


def layout(mirror):
    """Where the mirror has each file: the number of the tree and the place in it."""
    trees = {tree: number for number, tree in enumerate(mirror.trees)}
    found = {}
    for path, link in mirror.links.items():
        (tree,) = (each for each in trees if link.is_relative_to(each))
        found[path] = f"{trees[tree]}/{link.relative_to(tree)}"
    return found


def everything_in(place):
    return sorted(each for each in place.rglob("*") if not each.is_dir() or each.is_symlink())


def test_source_roots_are_folded_into_one(tmp_path):
    mirror = mirrored(tmp_path, "src/shop/a.py", "tools/run.py", "lib/src/other/b.py", "setup.py")
    assert layout(mirror) == {
        "src/shop/a.py": "0/shop/a.py",
        "tools/run.py": "0/tools/run.py",
        "lib/src/other/b.py": "0/other/b.py",
        "setup.py": "0/setup.py",
    }


def test_configured_roots_are_folded_too(tmp_path):
    mirror = mirrored(tmp_path, "lib/a/x.py", "lib/b/y.py", "z.py", roots=("lib/a", "lib/b"))
    assert layout(mirror) == {"lib/a/x.py": "0/x.py", "lib/b/y.py": "0/y.py", "z.py": "0/z.py"}


def test_src_inside_of_a_package_is_no_root(tmp_path):
    mirror = mirrored(tmp_path, "pkg/__init__.py", "pkg/src/a.py")
    assert layout(mirror)["pkg/src/a.py"] == "0/pkg/src/a.py"


def test_stubs_of_a_package_stand_in_its_place(tmp_path):
    mirror = mirrored(tmp_path, "shop-stubs/__init__.pyi", "shop-stubs/a.pyi", "shop/__init__.py", "shop/a.py")
    assert layout(mirror) == {
        "shop-stubs/__init__.pyi": "0/shop/__init__.pyi",
        "shop-stubs/a.pyi": "0/shop/a.pyi",
        "shop/__init__.py": "0/shop/__init__.py",
        "shop/a.py": "0/shop/a.py",
    }


def test_a_directory_that_is_called_stubs_further_down_stays(tmp_path):
    mirror = mirrored(tmp_path, "shop/x-stubs/a.pyi", "src/lib-stubs/a.pyi")
    assert layout(mirror) == {"shop/x-stubs/a.pyi": "0/shop/x-stubs/a.pyi", "src/lib-stubs/a.pyi": "0/lib/a.pyi"}


def test_a_windowed_script_is_a_module_like_any_other(tmp_path):
    assert layout(mirrored(tmp_path, "gui/main.pyw"))["gui/main.pyw"] == "0/gui/main.py"


def test_of_files_that_claim_one_place_the_first_gets_the_first_tree(tmp_path):
    mirror = mirrored(tmp_path, "shop/a.py", "src/shop/a.py", "lib/src/shop/a.py", "shop/a.pyw", "src/shop/only.py")
    assert layout(mirror) == {
        "lib/src/shop/a.py": "0/shop/a.py",
        "shop/a.py": "1/shop/a.py",
        "shop/a.pyw": "2/shop/a.py",
        "src/shop/a.py": "3/shop/a.py",
        "src/shop/only.py": "0/shop/only.py",
    }
    assert [tree.name for tree in mirror.trees] == ["0", "1", "2", "3"]


def test_a_module_and_its_stub_do_not_claim_one_place(tmp_path):
    assert layout(mirrored(tmp_path, "a.py", "a.pyi")) == {"a.py": "0/a.py", "a.pyi": "0/a.pyi"}


@pytest.mark.parametrize(
    "path",
    [
        "with space/a b.py",
        "größe/変数.py",
        "🍎.py",
        "a'b\"c.py",
        "-x.py",
        "--config=evil.py",
        "@list.py",
        "#x.py",
        "v1.2/mod.ule.py",
        "site-packages.d/a.b.c/x.py",
        "a.py/b.py",
        "a\\b.py",
        "%s.py",
        "-stubs/a.pyi",
    ],
)
def test_odd_names_stay_as_they_are(tmp_path, path):
    mirror = mirrored(tmp_path, path)
    assert layout(mirror) == {path: f"0/{path}"}
    assert mirror.links[path].read_text() == f"# {path}\n"


def test_what_is_hidden_is_shown(tmp_path):
    """Indexers pass over hidden files."""
    mirror = mirrored(tmp_path, ".hidden/.a.py", ".py.py", "src/.b/c.pyw", "d/_.e.py", "d/.e.py")
    assert layout(mirror) == {
        ".hidden/.a.py": "0/_.hidden/_.a.py",
        ".py.py": "0/_.py.py",
        "src/.b/c.pyw": "0/_.b/c.py",
        "d/.e.py": "0/d/_.e.py",
        "d/_.e.py": "1/d/_.e.py",
    }
    assert mirror.links["d/.e.py"].read_text() == "# d/.e.py\n"


@pytest.mark.parametrize("name", ["run", "run.sh"])
def test_a_script_whose_name_does_not_say_python_keeps_its_name(tmp_path, name):
    assert layout(mirrored(tmp_path, f"bin/{name}")) == {f"bin/{name}": f"0/bin/{name}"}


def test_links_lead_to_the_files(tmp_path):
    mirror = mirrored(tmp_path, "src/shop/a.py", "shop/a.py", "shop-stubs/a.pyi", "b.pyw")
    for path, link in mirror.links.items():
        assert link.is_symlink()
        assert link.is_absolute()
        assert link.readlink() == tmp_path / "repository" / path
        assert link.read_text() == f"# {path}\n"


def test_nothing_else_is_in_it(tmp_path):
    others = ("pyrefly.toml", "pyproject.toml", ".gitignore", "shop/data.json", "shop/ignored.py", ".venv/bin/python")
    mirror = mirrored(tmp_path, "shop/a.py", "src/shop/a.py", others=others)
    assert everything_in(tmp_path / "mirror") == sorted(mirror.links.values())
    assert Counter(each.is_symlink() for each in everything_in(tmp_path / "mirror")) == {True: 2}


def test_directories_are_made_and_never_linked(tmp_path):
    mirrored(tmp_path, "a/b/c.py")
    inside = tmp_path / "mirror" / "0" / "a"
    assert inside.is_dir()
    assert not inside.is_symlink()
    assert not (inside / "b").is_symlink()


def test_no_files_make_no_tree(tmp_path):
    mirror = mirrored(tmp_path)
    assert (mirror.trees, mirror.links) == ([], {})


def test_the_order_of_the_files_does_not_matter(tmp_path):
    paths = ["src/a.py", "a.py", "lib/src/a.py", "b.py"]
    one, other = (mirrored(tmp_path / name, *each) for name, each in (("1", paths), ("2", paths[::-1])))
    assert layout(one) == layout(other)


@pytest.mark.parametrize("paths", [("shop", "src/shop/a.py"), ("a.py", "src/a.py/b.py"), ("src/shop", "shop/a.py")])
def test_a_file_where_another_needs_a_directory_does_not_get_in_its_way(tmp_path, paths):
    """A script `shop` and a package `shop` in another root are nothing special."""
    mirror = mirrored(tmp_path, *paths)
    assert sorted(place.partition("/")[0] for place in layout(mirror).values()) == ["0", "1"]
    assert [mirror.links[path].read_text() for path in paths] == [f"# {path}\n" for path in paths]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("d/" * 1000 + "m.py", "it is more than 100 folders deep"),
        ("d/" * (DEEPEST + 1) + "m.py", "it is more than 100 folders deep"),
        (("d" * 200 + "/") * 11 + "m.py", "its path is longer than 2048 bytes"),
        ("." + "d" * 251 + ".py", "File name too long"),  # hidden, so its link has a longer name
    ],
)
def test_what_does_not_fit_is_told_and_the_rest_is_mirrored(tmp_path, path, reason):
    """The file need not be there: nothing is read."""
    mirror = Mirror(tmp_path / "repository", tmp_path / "mirror")
    mirror.add(module_names(["a.py", path, "d/m.py"]))
    assert layout(mirror) == {"a.py": "0/a.py", "d/m.py": "0/d/m.py"}
    assert mirror.left_out == {path: reason}


def test_a_file_may_be_deep(tmp_path):
    path = "d/" * DEEPEST + "m.py"
    assert layout(mirrored(tmp_path, path)) == {path: f"0/{path}"}
