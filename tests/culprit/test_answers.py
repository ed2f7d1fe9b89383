"""What a bisect answers on real histories: cases C1, C2, C5, C6, C7, C10 and C11."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolbisect.bisection.outcome import Ending, Kind
from poolbisect.bisection.plan import Budget, Mode, Plan
from poolbisect.culprit.decisions import Decisions
from poolbisect.culprit.outcome import Seen

from .reading import FIXED, bisect, named, suspects, write_line


def test_every_place_of_a_step_is_found_in_few_probes(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, [str(number) for number in range(24)])
    for step in range(1, 24):
        seen: list[int] = []
        found = bisect(
            builder.folder, line[0], line[-1], tmp_path / str(step), step=step, seen=seen
        )
        assert named(found) == line[step]
        assert len(seen) <= 2 + 5  # both ends, and log2 of 23
        assert {step, step - 1} <= set(seen), "blamed without having measured it and its parent"
        assert found.exit_code == 0


def test_first_bad_and_first_fixed_are_two_questions(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 5 + ["bad"] * 6 + ["good"] * 4)
    folder = builder.folder
    broken = bisect(folder, line[0], line[8], tmp_path / "broken")
    fixed = bisect(folder, good=line[-1], bad=line[8], out=tmp_path / "fixed", find=FIXED)
    assert named(broken) == line[5]
    assert named(fixed) == line[11]


def test_commits_that_do_not_run_leave_a_range(builder: Any, tmp_path: Path) -> None:
    broken = ["build_failed"] * 3
    line = write_line(builder, ["good", "good", *broken, "bad", "bad"])
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert found.verdict == "suspect_range"
    assert found.exit_code == 4
    assert suspects(found) == line[2:6]


def test_commits_that_do_not_run_elsewhere_cost_nothing(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 3 + ["build_failed"] * 3 + ["good"] * 3 + ["bad"] * 5)
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert named(found) == line[9]


def test_a_dead_block_is_not_walked_through(builder: Any, tmp_path: Path) -> None:
    states = ["good"] * 8 + ["build_failed"] * 25 + ["bad"] * 7
    line = write_line(builder, states)
    seen: list[int] = []
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", seen=seen)
    assert suspects(found) == line[8:34]
    assert len(seen) <= 20


def merged(builder: Any, branch: list[str], merge: str) -> tuple[list[str], list[str], str]:
    """Two commits, a branch that starts at the first, a commit beside it, and the merge."""
    main = write_line(builder, ["good", "good"])
    builder.git("checkout", "-q", "-b", "side")
    side = [
        builder.commit(f"side {number}", {"state.txt": state, f"s{number}.txt": "x"})
        for number, state in enumerate(branch)
    ]
    builder.git("checkout", "-q", "main")
    main.append(builder.commit("beside", {"beside.txt": "x"}))
    builder.git("merge", "-q", "--no-ff", "--no-commit", "side")
    main.append(builder.commit("merge", {"state.txt": merge}))
    main.append(builder.commit("after", {"after.txt": "x"}))
    return main, side, main[3]


def test_a_merge_is_the_culprit_by_default(builder: Any, tmp_path: Path) -> None:
    main, _, merge = merged(builder, ["good", "bad", "bad"], "bad")
    found = bisect(builder.folder, main[0], main[-1], tmp_path / "s")
    assert named(found) == merge
    assert found.inside is None


def test_inside_a_merge_when_asked(builder: Any, tmp_path: Path) -> None:
    main, side, merge = merged(builder, ["good", "bad", "bad"], "bad")
    found = bisect(builder.folder, main[0], main[-1], tmp_path / "s", inside=True)
    assert named(found) == side[1]
    assert found.inside is not None
    assert merge[:10] in found.inside.text


def test_a_merge_whose_branch_does_not_run_stays_the_answer(builder: Any, tmp_path: Path) -> None:
    main, _, merge = merged(builder, ["build_failed"] * 3, "bad")
    found = bisect(builder.folder, main[0], main[-1], tmp_path / "s", inside=True)
    assert named(found) == merge
    assert found.exit_code == 0
    assert found.inside is not None
    assert "cannot be told" in found.inside.text


def test_a_merge_that_is_itself_at_fault(builder: Any, tmp_path: Path) -> None:
    main, _, merge = merged(builder, ["good", "good"], "bad")
    found = bisect(builder.folder, main[0], main[-1], tmp_path / "s", inside=True)
    assert named(found) == merge
    assert found.inside is not None
    assert "bringing the two together" in found.inside.text


def test_a_lost_connection_is_never_bad(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 4 + ["infra"] + ["good"] * 2 + ["bad"] * 3)
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert named(found) == line[7]


def test_a_host_that_fails_mostly_stops_and_can_be_resumed(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] + ["infra"] * 6 + ["bad"])
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert found.verdict == "infrastructure"
    assert found.exit_code == 3
    lost = [step.position for step in found.steps if step.observation.ending is Ending.INFRA]
    assert len(lost) >= 3
    assert len(set(lost)) == 2


@pytest.mark.parametrize(
    ("states", "kind"),
    [(["good", "good", "good"], Kind.BOTH_GOOD), (["bad", "bad", "bad"], Kind.BOTH_BAD)],
)
def test_ends_alike_are_a_usage_error(
    builder: Any, tmp_path: Path, states: list[str], kind: Kind
) -> None:
    line = write_line(builder, states)
    seen: list[int] = []
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", seen=seen)
    assert found.verdict == kind.value
    assert found.exit_code == 2
    assert seen == [0, 2]


def test_a_flaky_subject_gives_the_culprit_or_a_range(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["rate 1.0"] * 9 + ["rate 0.3"] * 7)
    plan = Plan(mode=Mode.VERDICTS)
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", plan=plan)
    assert named(found) == line[9] or line[9] in suspects(found)


def test_of_two_steps_the_one_that_crosses_the_rule(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["rate 0.80"] * 6 + ["rate 0.65"] * 6 + ["rate 0.50"] * 6)
    plan = Plan(mode=Mode.COUNTS, rule=0.60)
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", plan=plan)
    assert named(found) == line[12]
    assert found.verdict == "second_step"
    assert found.result is not None
    assert found.result.others


def test_a_culprit_that_touches_documents_only_is_named_with_that_remark(
    builder: Any, tmp_path: Path
) -> None:
    line = [builder.commit("start", {"state.txt": "good"}), builder.commit("next", {"a.py": "1"})]
    # The probe's own file is a document here, as a prompt kept in docs/ would be.
    line.append(builder.commit("docs", {"docs/prompt.md": "text", "state.txt": "bad"}))
    builder.git("rm", "-q", "a.py")
    line.append(builder.commit("after", {"b.py": "1"}))
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert named(found) == line[2]
    assert found.remark == ""


def test_confirmation_names_the_steps_it_rests_on(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 5 + ["bad"] * 4)
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert found.confirmation is not None
    assert found.confirmation.parent.seen is Seen.GOOD
    assert line[4][:10] in found.confirmation.parent.text
    assert found.confirmation.culprit.seen is Seen.BAD
    assert found.confirmation.revert.seen is Seen.NOT_TRIED


def test_a_budget_ends_in_a_range_and_resuming_with_more_goes_on(
    builder: Any, tmp_path: Path
) -> None:
    line = write_line(builder, ["good"] * 9 + ["bad"] * 9)
    out, seen = tmp_path / "s", list[int]()
    first = bisect(builder.folder, line[0], line[-1], out, budget=Budget(probes=3), seen=seen)
    assert first.verdict == "suspect_range"
    assert line[9] in suspects(first)
    again = bisect(builder.folder, line[0], line[-1], out, budget=Budget(probes=30), seen=seen)
    assert named(again) == line[9]
    assert len(seen) == len(set(seen)), "something was measured twice"


def test_skipped_commits_are_not_measured_and_not_named(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 5 + ["bad"] * 5)
    seen: list[int] = []
    skips = Decisions(skips=(f"{line[3]}^..{line[6]}",))
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", decisions=skips, seen=seen)
    assert not {3, 4, 5, 6} & set(seen)
    assert suspects(found) == line[3:8]


def test_a_suspect_and_its_parent_come_right_after_the_ends(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 20 + ["bad"] * 20)
    seen: list[int] = []
    suspect = Decisions(suspects=(line[20],))
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", decisions=suspect, seen=seen)
    assert named(found) == line[20]
    assert seen == [0, 39, 20, 19]


def test_a_wrong_suspect_costs_two_probes(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 20 + ["bad"] * 20)
    seen: list[int] = []
    suspect = Decisions(suspects=(line[33],))
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s", decisions=suspect, seen=seen)
    assert named(found) == line[20]
    assert len(seen) <= 2 + 2 + 5


def test_a_forgotten_verdict_is_measured_again(builder: Any, tmp_path: Path) -> None:
    line = write_line(builder, ["good"] * 4 + ["bad"] * 4)
    out = tmp_path / "s"
    first = bisect(builder.folder, line[0], line[-1], out, step=None)
    assert named(first) == line[4]
    seen: list[int] = []
    forget = Decisions(forgets=(line[4],))
    again = bisect(builder.folder, line[0], line[-1], out, decisions=forget, seen=seen)
    assert named(again) == line[4]
    assert seen == [4]


@pytest.fixture
def interrupted(builder: Any) -> Callable[[], list[str]]:
    return lambda: write_line(builder, ["good"] * 4 + ["interrupt"] + ["bad"] * 4)


def test_an_interrupt_leaves_a_partial_answer(
    builder: Any, tmp_path: Path, interrupted: Callable[[], list[str]]
) -> None:
    line = interrupted()
    found = bisect(builder.folder, line[0], line[-1], tmp_path / "s")
    assert found.verdict == "interrupted"
    assert found.exit_code == 130
    assert [step.position for step in found.steps] == [0, 8]
