from __future__ import annotations

import pytest

from poolbisect.evidence.environment import (
    SeriesPoint,
    VersionChange,
    code_changed,
    runner_changed,
    version_changes,
)


def test_changed_added_and_removed_dependencies_are_listed_by_name():
    old = SeriesPoint(0.8, dependencies={"torch": "2.9", "numpy": "2.0", "gone": "1"})
    new = SeriesPoint(0.8, dependencies={"torch": "2.10", "numpy": "2.0", "fresh": "3"})
    assert version_changes(old, new) == (
        VersionChange("fresh", None, "3"),
        VersionChange("gone", "1", None),
        VersionChange("torch", "2.9", "2.10"),
    )
    assert [str(change) for change in version_changes(old, new)] == [
        "fresh absent → 3",
        "gone 1 → absent",
        "torch 2.9 → 2.10",
    ]


def test_what_was_not_recorded_is_never_called_a_change():
    bare, full = SeriesPoint(0.8), SeriesPoint(0.8, "a", {"torch": "2.9"}, "abc")
    assert version_changes(bare, full) == ()
    assert not runner_changed(bare, full)
    assert code_changed([bare, full]) is None


def test_code_changes_where_revisions_differ():
    same = [SeriesPoint(0.8, revision="abc")] * 3
    assert code_changed(same) is False
    assert code_changed([*same, SeriesPoint(0.8, revision="abd")]) is True


def test_scores_on_another_scale_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        SeriesPoint(77.6)
