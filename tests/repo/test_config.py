"""A repository may choose its files and roots, and nothing else."""

import pytest

from codeanatomy.errors import InputError
from codeanatomy.repo.config import RepoConfig, read_config


def test_no_settings(tmp_path):
    assert read_config(tmp_path) == RepoConfig()


def test_settings_from_either_file_its_own_first(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.codeanatomy]\nexclude = ["gen/"]\nroots = ["lib/", "./x", "."]\n')
    assert read_config(tmp_path) == RepoConfig(exclude=("gen/",), roots=("lib", "x", ""))
    (tmp_path / "codeanatomy.toml").write_text('include = ["src/**"]\n')
    assert read_config(tmp_path) == RepoConfig(include=("src/**",))


def test_a_project_file_that_says_nothing_to_us_may_be_broken(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[broken")
    assert read_config(tmp_path) == RepoConfig()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "codeanatomy"\ntool = 1\n')
    assert read_config(tmp_path) == RepoConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'\nexclude = ["a"', r"codeanatomy\.toml is not valid TOML: .*line 2|codeanatomy\.toml .*end of document"),
        (b"\n\nexclude = x", r"codeanatomy\.toml is not valid TOML: .*line 3"),
        (b'exclude = [\n"caf\xe9"]', r"codeanatomy\.toml is not UTF-8 \(at line 2\)"),
        (b"a = " + b"[" * 100_000, r"codeanatomy\.toml is"),
        (b'exclude = "a"', r"'exclude' in codeanatomy\.toml must be a list of strings"),
        (b"roots = [1]", r"'roots' in codeanatomy\.toml must be a list of strings"),
        (b'roots = ["a/../../b"]', r"root 'a/\.\./\.\./b' in codeanatomy\.toml leaves the repository"),
        (b'roots = ["/etc"]', r"root '/etc' in codeanatomy\.toml leaves the repository"),
    ],
)
def test_bad_settings(tmp_path, text, message):
    (tmp_path / "codeanatomy.toml").write_bytes(text)
    with pytest.raises(InputError, match=message) as caught:
        read_config(tmp_path)
    assert "\n" not in str(caught.value)


def test_bad_settings_in_the_project_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool]\ncodeanatomy = 1\n")
    with pytest.raises(InputError, match=r"\[tool\.codeanatomy\] in pyproject\.toml must be a table"):
        read_config(tmp_path)


def test_whatever_else_a_repository_sets_has_no_effect(tmp_path):
    (tmp_path / "codeanatomy.toml").write_text("interpreter = '/bin/sh'\nprofile = 'x'\nroots = ['lib']\n")
    assert read_config(tmp_path) == RepoConfig(roots=("lib",))


def test_a_linked_file_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text("secret = 1")
    (tmp_path / "codeanatomy.toml").symlink_to("elsewhere")
    assert read_config(tmp_path) == RepoConfig()
