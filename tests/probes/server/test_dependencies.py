"""An environment is named by what the sources declare, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from poolbisect.probes.server.dependencies import (
    Declared,
    UnreadableDependenciesError,
    agreement,
    declared_by,
    fits_version,
    of_release,
)


def declared(tree: Path, text: str, name: str = "pyproject.toml") -> Declared:
    (tree / "python").mkdir(exist_ok=True)
    (tree / "python" / name).write_text(text)
    return declared_by(tree, name)


def test_order_case_and_comments_do_not_make_another_environment(tmp_path: Path) -> None:
    one = declared(tmp_path, '[project]\nname="sglang"\ndependencies = ["Torch == 2.9", "a_b"]')
    two = declared(
        tmp_path, '[project]\nname="sglang"\ndependencies = [\n"a-B", # why\n"torch==2.9"]'
    )
    assert one.requirements == two.requirements == ("a-b", "torch==2.9")
    assert one.key("x") == two.key("x") != one.key("y")


def test_another_version_is_another_environment(tmp_path: Path) -> None:
    keys = {
        declared(tmp_path, f'[project]\nname="s"\ndependencies=["torch=={v}"]').key()
        for v in ("2.9", "2.10")
    }
    assert len(keys) == 2


def test_extras_of_its_own_are_put_in_their_place(tmp_path: Path) -> None:
    """Older releases declared the server's dependencies as the extra `srt`, made of others."""
    found = declared(
        tmp_path,
        """
[project]
name = "sglang"
dependencies = ["numpy"]
[project.optional-dependencies]
common = ["torch==2.5", "sglang[srt]"]
srt = ["sglang[common]", "sgl-kernel==0.1"]
docs = ["sphinx"]
""",
    )
    assert found.requirements == ("numpy", "sgl-kernel==0.1", "torch==2.5")
    assert found.kernel == "sgl-kernel==0.1"


def test_the_cpu_build_declares_in_a_file_of_its_own(tmp_path: Path) -> None:
    declared(tmp_path, '[project]\nname="s"\ndependencies=["a"]')
    cpu = declared(tmp_path, '[project]\nname="s"\ndependencies=["b"]', "pyproject_cpu.toml")
    assert cpu.requirements == ("b",)
    assert cpu.source == "python/pyproject_cpu.toml"


def test_nothing_declared_is_an_environment_too(tmp_path: Path) -> None:
    assert declared_by(tmp_path).requirements == ()


@pytest.mark.parametrize("text", ["[project", '[project]\ndependencies=["= 3"]', "project = 3"])
def test_what_cannot_be_read_is_the_trees_fault(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableDependenciesError, match=r"python/pyproject\.toml"):
        declared(tmp_path, text)


@pytest.mark.parametrize(
    ("wanted", "installed", "agrees"),
    [
        ("sgl-kernel==0.3.21", "0.3.21", True),
        ("sgl-kernel==0.3.21", "0.3.21+cu130", True),
        ("sgl-kernel==0.3.21", "0.3.20", False),
        ("sglang-kernel==0.4.3", None, False),
    ],
)
def test_the_kernel_declared_against_the_one_installed(
    wanted: str, installed: str | None, agrees: bool
) -> None:
    name = wanted.partition("=")[0]
    found = agreement(wanted, {name: installed})
    assert found == {"declared": wanted, "installed": installed, "agrees": agrees}
    assert agreement(None, {}) is None


def test_a_release_is_its_own_requirement() -> None:
    assert of_release("sglang", "0.5.11").requirements == ("sglang==0.5.11",)
    assert of_release("sglang", "0.4.10").requirements == ("sglang[srt]==0.4.10",)


@given(st.integers(0, 30), st.integers(0, 30))
def test_a_build_tag_does_not_matter(minor: int, patch: int) -> None:
    version = f"0.{minor}.{patch}"
    assert fits_version(SpecifierSet(f"=={version}"), f"{version}+cu124")
