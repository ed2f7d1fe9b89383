"""What a night measures, in which role; and its configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.nightly.config import load_config
from poolbisect.nightly.subjects import (
    CHECKOUT,
    NEWEST_RELEASE,
    UNDER_TEST,
    newest_releases,
    plan_subjects,
)
from poolbisect.scenario import load_scenario


def none_offered() -> list[str]:
    raise AssertionError("asked for releases that nobody wants")


def test_the_first_subject_is_under_test_whatever_it_is_called() -> None:
    for name in ("corrected", "original", "release:0.5.11"):
        subjects, failures = plan_subjects([name], 0, None, none_offered)
        assert [(one.role, one.subject) for one in subjects] == [(UNDER_TEST, name)]
        assert not failures


def test_further_subjects_the_checkout_and_releases_are_series_of_their_own() -> None:
    offered = ["0.5.9", "0.5.10", "0.5.11rc1", "0.5.11"]
    subjects, _ = plan_subjects(["corrected", "original"], 2, "a" * 40, lambda: offered)
    assert [(one.role, one.subject) for one in subjects] == [
        (UNDER_TEST, "corrected"),
        ("original", "original"),
        (CHECKOUT, f"commit:{'a' * 40}"),
        (NEWEST_RELEASE, "release:0.5.11"),
        ("release:0.5.10", "release:0.5.10"),
    ]
    assert [one.follows_name for one in subjects] == [False, True, False, False, True]


def test_a_subject_is_measured_once() -> None:
    subjects, _ = plan_subjects(["release:0.5.11"] * 2, 1, None, lambda: ["0.5.11"])
    assert [one.role for one in subjects] == [UNDER_TEST]


def test_releases_that_cannot_be_listed_are_a_failure_that_stops_nothing() -> None:
    def offline() -> list[str]:
        raise InfrastructureError("the index cannot be reached")

    subjects, (failure,) = plan_subjects(["corrected"], 2, None, offline)
    assert [one.subject for one in subjects] == ["corrected"]
    assert "the index cannot be reached" in failure.text


@given(
    st.lists(
        st.from_regex(r"(0|1)\.[0-9]{1,2}(\.[0-9]|rc1|\.post1)?", fullmatch=True), unique=True
    ),
    st.integers(1, 4),
)
def test_the_newest_releases_are_the_largest_that_are_no_pre_releases(
    versions: list[str], count: int
) -> None:
    chosen = newest_releases([*versions, "no version"], count)
    stable = [v for v in versions if not Version(v).is_prerelease]
    assert len(chosen) == min(count, len(stable))
    left = [Version(v) for v in stable if v not in chosen]
    assert all(Version(v) >= max(left, default=Version("0")) for v in chosen)


def test_the_shipped_configuration_names_scenarios_that_exist() -> None:
    config = load_config()
    assert len(config.scenarios) >= 2
    assert "mimo-canary" in config.scenarios
    for name in config.scenarios:
        load_scenario(name)
    assert config.minimum_drop == 0.01


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('scenarios = ["a"]\nsubject = ["corrected"]', "unknown key `subject`"),
        ('scenarios = ["a"]\nalpha = 2', "alpha"),
        ('scenarios = "mimo-canary"', "scenarios"),
        ("scenarios = []", "scenarios is empty"),
        ('scenarios = ["a"]\nsubjects = []', "subjects is empty"),
        ("subjects = []", "missing key `scenarios`"),
        ("scenarios = [", "not valid TOML"),
    ],
)
def test_a_wrong_configuration_is_named_by_file_and_key(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "night.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"night\.toml") as error:
        load_config(file)
    assert words in str(error.value)


def test_scenario_files_are_found_from_the_configurations_folder(tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    file.write_text('scenarios = ["mimo-canary", "mine.toml"]')
    assert load_config(file).scenarios == ("mimo-canary", str(tmp_path / "mine.toml"))
