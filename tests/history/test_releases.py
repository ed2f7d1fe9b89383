"""Releases come through pip, once, and only what was downloaded is ever read."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history import package_index
from poolbisect.history.releases import (
    WheelTree,
    default_cache_dir,
    fetch_release,
    list_releases,
)

POOL = "sglang/srt/mem_cache/memory_pool.py"


def make_wheel(folder: Path, version: str, tag: str = "py3-none-any", text: str = "") -> Path:
    wheel = folder / f"sglang-{version}-{tag}.whl"
    info = f"sglang-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(POOL, text or f"class ReqToTokenPool: version = {version!r}\n")
        archive.writestr("sglang/srt/other.py", "x = 1\n")
        archive.writestr("sglang/srt/page.md", "class ReqToTokenPool\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n"
        )
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is all the index there is."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    return folder


@pytest.fixture
def no_network(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index at a port where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "1")


def test_a_wheel_shows_its_sources(tmp_path: Path) -> None:
    tree = WheelTree(make_wheel(tmp_path, "1.2.3.post1", text="class ReqToTokenPool: ä = 1\n"))
    assert tree.name == "sglang 1.2.3.post1"
    assert tree.read(POOL) == "class ReqToTokenPool: ä = 1\n"
    assert tree.read("sglang/srt/absent.py") is None
    assert list(tree.find("class ReqToTokenPool")) == [POOL]
    assert list(tree.find("class ReqToTokenPool", under="sglang/srt/mem")) == []


def test_a_release_is_downloaded_once(index: Path, tmp_path: Path) -> None:
    make_wheel(index, "9.8.7")
    cache = tmp_path / "cache"
    first = fetch_release("9.8.7", cache)
    for wheel in index.iterdir():
        wheel.unlink()
    again = fetch_release("9.8.7", cache)
    assert first.wheel == again.wheel
    assert again.read(POOL) == "class ReqToTokenPool: version = '9.8.7'\n"
    assert sorted(file.name for file in cache.iterdir() if file.suffix != ".lock") == [
        "releases.json",
        "sglang-9.8.7-py3-none-any.whl",
    ]


def test_a_wheel_for_another_python_and_platform_serves_as_well(
    index: Path, tmp_path: Path
) -> None:
    other = "310" if sys.version_info[:2] != (3, 10) else "312"
    make_wheel(index, "9.8.7", f"cp{other}-cp{other}-manylinux_2_34_aarch64")
    assert fetch_release("9.8.7", tmp_path / "cache").version == "9.8.7"


@pytest.mark.parametrize("damage", [b"", b"not a wheel any more"])
def test_a_cached_wheel_that_changed_is_downloaded_again(
    index: Path, tmp_path: Path, damage: bytes
) -> None:
    make_wheel(index, "9.8.7")
    cache = tmp_path / "cache"
    fetch_release("9.8.7", cache).wheel.write_bytes(damage)
    assert fetch_release("9.8.7", cache).read(POOL) is not None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"9.8.7": 3}', '{"9.8.7": {"file": "../x", "sha256": "0"}}']
)
def test_a_damaged_index_of_the_cache_only_costs_a_download(
    index: Path, tmp_path: Path, content: str
) -> None:
    make_wheel(index, "9.8.7")
    cache = tmp_path / "cache"
    fetch_release("9.8.7", cache)
    (cache / "releases.json").write_text(content)
    fetch_release("9.8.7", cache)
    assert json.loads((cache / "releases.json").read_text())["9.8.7"]["file"].endswith(".whl")


def test_two_processes_may_fetch_the_same_release(index: Path, tmp_path: Path) -> None:
    make_wheel(index, "9.8.7")
    script = (
        "import sys, pathlib; from poolbisect.history.releases import fetch_release; "
        "print(fetch_release('9.8.7', pathlib.Path(sys.argv[1])).name)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "cache")]
    root = Path(package_index.__file__).parents[2]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)
    ]
    assert [process.communicate()[0] for process in running] == ["sglang 9.8.7\n"] * 2


def test_an_unknown_version_is_the_users_mistake(index: Path, tmp_path: Path) -> None:
    make_wheel(index, "9.8.7")
    with pytest.raises(UsageError, match=r"no sglang 9\.8\.6 wheel"):
        fetch_release("9.8.6", tmp_path / "cache")


@pytest.mark.parametrize("version", ["", "newest", "9.8.*", ">=9", "9.8.7 --pre", "../9.8.7"])
def test_what_is_no_version_never_reaches_pip(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_index, "_pip", lambda *_: pytest.fail("pip was asked"))
    with pytest.raises(UsageError, match="not a release version"):
        fetch_release(version, tmp_path)


def test_no_network_is_not_the_users_mistake(no_network: None, tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="could be reached"):
        fetch_release("9.8.7", tmp_path / "cache")
    with pytest.raises(InfrastructureError, match="could be reached"):
        list_releases()


@pytest.mark.slow
def test_no_network_is_recognised_without_any_word_of_it(
    no_network: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(InfrastructureError, match="could be reached"):
        fetch_release("9.8.7", tmp_path / "cache")


def test_a_python_without_pip_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InfrastructureError, match="has no pip"):
        fetch_release("9.8.7", tmp_path)


def test_a_cache_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(InfrastructureError, match="POOLBISECT_CACHE"):
        fetch_release("9.8.7", tmp_path / "cache")


def test_releases_are_listed_oldest_first(index: Path) -> None:
    other = "310" if sys.version_info[:2] != (3, 10) else "312"
    make_wheel(index, "0.5.10")
    make_wheel(index, "0.5.9")
    make_wheel(index, "0.5.10rc0")
    make_wheel(index, "0.5.10.post1")
    make_wheel(index, "0.5.11", f"cp{other}-cp{other}-manylinux_2_34_x86_64")
    assert list_releases() == ["0.5.9", "0.5.10rc0", "0.5.10", "0.5.10.post1", "0.5.11"]


def test_the_cache_folder_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("POOLBISECT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache_dir() == tmp_path / ".cache" / "poolbisect"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache_dir() == tmp_path / ".cache" / "poolbisect"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "poolbisect"
    monkeypatch.setenv("POOLBISECT_CACHE", "~/own")
    assert default_cache_dir() == tmp_path / "own"
