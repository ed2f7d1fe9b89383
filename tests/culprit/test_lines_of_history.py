"""Every commit that is blamed had its parent measured, whatever the shape of the history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poolbisect.bisection.outcome import Find
from poolbisect.bisection.plan import Budget
from poolbisect.culprit.decisions import Decisions
from poolbisect.culprit.request import BisectRequest, pinned

from .reading import bisect, named, suspects


def commit(builder: Any, title: str, state: str, *, file: str = "") -> str:
    files = {"state.txt": f"{state}\n", f"{file or title}.txt": title}
    return str(builder.commit(title, files))


def merge(builder: Any, branch: str, state: str, *more: str) -> str:
    """Merge into the current branch, with the outcome given rather than worked out."""
    builder.git("merge", "-q", "--no-ff", "--no-commit", "-s", "ours", branch, *more)
    return str(builder.commit(f"merge {branch}", {"state.txt": f"{state}\n"}))


def test_a_branch_that_took_the_main_line_in_is_searched_from_there(
    builder: Any, tmp_path: Path
) -> None:
    commit(builder, "m0", "bad")  # an old fault, mended on the main line
    builder.git("checkout", "-q", "-b", "side")
    for number in range(1, 9):
        commit(builder, f"b{number}", "bad")
    builder.git("checkout", "-q", "main")
    first = commit(builder, "m1", "good")
    commit(builder, "m2", "good")
    builder.git("checkout", "-q", "side")
    taken_in = merge(builder, "main", "good")
    culprit = commit(builder, "b9", "bad")
    builder.git("checkout", "-q", "main")
    merge(builder, "side", "bad")
    last = commit(builder, "m4", "bad", file="m4")
    seen: list[int] = []
    found = bisect(builder.folder, first, last, tmp_path / "s", inside=True, seen=seen)
    assert named(found) == culprit
    assert found.innermost.history.entries[0].name == taken_in


def test_an_end_inside_a_merged_branch_is_replaced_by_where_the_lines_part(
    builder: Any, tmp_path: Path
) -> None:
    parting = commit(builder, "m1", "bad")
    builder.git("checkout", "-q", "-b", "side")
    commit(builder, "b1", "bad")
    good = commit(builder, "b2", "good")
    builder.git("checkout", "-q", "main")
    commit(builder, "m2", "bad")
    commit(builder, "m3", "bad")
    merge(builder, "side", "bad")
    last = commit(builder, "m5", "bad")
    found = bisect(builder.folder, good, last, tmp_path / "s")
    assert named(found) is None
    assert (found.verdict, found.exit_code) == ("both_bad", 2)
    assert found.history.entries[0].name == parting
    assert "not on the first-parent line" in found.notes[0]


def test_where_the_lines_part_is_as_good_an_end(builder: Any, tmp_path: Path) -> None:
    parting = commit(builder, "m1", "good")
    builder.git("checkout", "-q", "-b", "side")
    good = commit(builder, "b1", "good")
    builder.git("checkout", "-q", "main")
    culprit = commit(builder, "m2", "bad")
    merge(builder, "side", "bad")
    last = commit(builder, "m4", "bad")
    found = bisect(builder.folder, good, last, tmp_path / "s")
    assert named(found) == culprit
    assert found.history.entries[0].name == parting


def test_every_position_has_the_one_before_it_as_its_parent(builder: Any) -> None:
    start = commit(builder, "m0", "good")
    builder.git("checkout", "-q", "-b", "side")
    inside = commit(builder, "b1", "good")
    builder.git("checkout", "-q", "main")
    for number in range(1, 4):
        commit(builder, f"m{number}", "good")
    merge(builder, "side", "good")
    last = commit(builder, "m5", "bad")
    for good in (start, inside):
        for find in Find:
            ends = {"good": good, "bad": last} if find is Find.INTRODUCED else {}
            ends = ends or {"good": last, "bad": good}
            request = BisectRequest(
                history="commit", find=find, repository=str(builder.folder), **ends
            )
            _, history = pinned(request)
            shas = [one.sha for one in history.commits]
            assert [one.parents[0] for one in history.commits[1:]] == shas[:-1]


def test_every_branch_of_an_octopus_is_looked_into(builder: Any, tmp_path: Path) -> None:
    first = commit(builder, "m0", "good")
    for name, states in (("x", ["good", "good"]), ("y", ["good", "bad", "bad"])):
        builder.git("checkout", "-q", "-b", name, first)
        line = [commit(builder, f"{name}{n}", state) for n, state in enumerate(states)]
    culprit = line[1]
    builder.git("checkout", "-q", "main")
    commit(builder, "m1", "good")
    builder.git("merge", "-q", "--no-ff", "--no-commit", "-s", "ours", "x", "y")
    builder.commit("octopus", {"state.txt": "bad\n"})
    last = commit(builder, "m3", "bad")
    found = bisect(builder.folder, first, last, tmp_path / "s", inside=True)
    assert named(found) == culprit


def octopus(builder: Any) -> tuple[str, str, dict[str, list[str]]]:
    """Two branches of three commits merged at once; the second commit of the second is at fault."""
    first = commit(builder, "m0", "good")
    lines = {}
    for name, states in (("x", ["good"] * 3), ("y", ["good", "bad", "bad"])):
        builder.git("checkout", "-q", "-b", name, first)
        lines[name] = [commit(builder, f"{name}{n}", state) for n, state in enumerate(states)]
    builder.git("checkout", "-q", "main")
    commit(builder, "m1", "good")
    builder.git("merge", "-q", "--no-ff", "--no-commit", "-s", "ours", "x", "y")
    builder.commit("octopus", {"state.txt": "bad\n"})
    return first, commit(builder, "m3", "bad"), lines


def test_what_is_skipped_inside_a_merge_stays_skipped(builder: Any, tmp_path: Path) -> None:
    first, last, lines = octopus(builder)
    skip = Decisions(skips=(lines["y"][1],), suspects=(lines["x"][1],))
    ends = (builder.folder, first, last, tmp_path / "s")
    found = bisect(*ends, inside=True, decisions=skip)
    assert found.inside is not None
    assert found.inside.outcome is not None
    assert suspects(found.inside.outcome) == lines["y"][1:]
    again = bisect(*ends)
    assert again.inside is not None
    assert again.inside.outcome is not None
    assert suspects(again.inside.outcome) == lines["y"][1:]


def test_what_is_decided_later_reaches_a_branch_too(builder: Any, tmp_path: Path) -> None:
    first, last, lines = octopus(builder)
    ends = (builder.folder, first, last, tmp_path / "s")
    bisect(*ends, inside=True, budget=Budget(probes=2))
    found = bisect(*ends, decisions=Decisions(skips=(lines["y"][1],)))
    assert found.inside is not None
    assert found.inside.outcome is not None
    assert suspects(found.inside.outcome) == lines["y"][1:]
