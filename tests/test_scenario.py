"""Scenario files: the shipped ones load, and a bad one is refused in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.engine.config import EngineConfig
from poolbisect.errors import UsageError
from poolbisect.probes.miniature import engine_config
from poolbisect.scenario import (
    Expectation,
    Symptom,
    load_scenario,
    read_scenario,
    scenario_folder,
    scenario_names,
)
from poolbisect.subject import parse_subject

VALID = """\
name = "small"
title = "A small one"
stands-for = "Nothing in particular."
symptom = "accuracy"
buffers = ["req_to_hidden_states_pool"]

[workload]
task = "arithmetic-1319"
model = "mimo"
questions = 100

[engine]
dp-size = 2
page-size = 64
enable-dp-attention = true

[judging]
alpha = 0.01

[[subjects]]
name = "original"
expect = "bad"
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write VALID with one text replaced by another."""

    def write(old: str, new: str) -> Path:
        assert old in VALID
        path = tmp_path / "mine.toml"
        path.write_text(VALID.replace(old, new, 1))
        return path

    return write


def refusal(path: Path) -> str:
    """The one line that says why `path` is refused."""
    with pytest.raises(UsageError) as raised:
        read_scenario(path)
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    assert str(path) in message
    assert raised.value.exit_code == 2
    return message


def test_the_file_the_bad_ones_are_made_from_is_good(
    written: Callable[[str, str], Path],
) -> None:
    scenario = read_scenario(written("name", "name"))
    assert scenario.symptom is Symptom.ACCURACY
    assert scenario.engine.dp_size == 2
    assert scenario.judging.alpha == 0.01
    assert scenario.expectation("original") is Expectation.BAD
    assert scenario.expectation("unpadded") is None


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("page-size = 64", "page-sise = 64", ["page-sise", "engine", "unknown key"]),
        ("name = ", "nmae = 1\nname = ", ["nmae", "unknown key"]),
        ("alpha = 0.01", "alhpa = 0.01", ["alhpa", "judging"]),
        ('expect = "bad"', 'expect = "bad"\nwhy = 1', ["why", "subjects"]),
        ("[judging]", "[memroy]\n[judging]", ["memroy"]),
        ("page-size = 64", 'page-size = "64"', ["engine.page-size", "int", "str"]),
        ("page-size = 64", "page-size = 64.5", ["engine.page-size", "int", "float"]),
        ("page-size = 64", "page-size = -64", ["engine.page-size", "1"]),
        ("page-size = 64", "page-size = 0", ["engine.page-size", "1"]),
        ("dp-size = 2", "dp-size = -2", ["engine.dp-size"]),
        ("questions = 100", "questions = -1", ["workload.questions"]),
        ("questions = 100", "questions = 100\nshots = -1", ["workload.shots"]),
        ("questions = 100", "questions = 100\ntemperature = -0.5", ["workload.temperature"]),
        ("alpha = 0.01", "alpha = 0", ["judging.alpha"]),
        ("alpha = 0.01", "alpha = 1.0", ["judging.alpha"]),
        ("alpha = 0.01", "alpha = nan", ["judging.alpha"]),
        ("alpha = 0.01", "smallest-drop = nan", ["judging.smallest-drop"]),
        ("questions = 100", "questions = 100\ntemperature = nan", ["workload.temperature"]),
        ('symptom = "accuracy"', 'symptom = "slowness"', ["symptom", "slowness"]),
        ('symptom = "accuracy"', "symptom = 3", ["symptom"]),
        ('expect = "bad"', 'expect = "worse"', ["expect", "worse"]),
        ('buffers = ["req_to_hidden_states_pool"]', 'buffers = "x"', ["buffers"]),
        ('buffers = ["req_to_hidden_states_pool"]', "buffers = [1]", ["buffers"]),
        ('task = "arithmetic-1319"\n', "", ["task", "workload", "missing key"]),
        ('name = "small"\n', "", ["name", "missing key"]),
        ('[[subjects]]\nname = "original"\nexpect = "bad"\n', "", ["subjects"]),
        ('[[subjects]]\nname = "original"\nexpect = "bad"\n', "[subjects]\n", ["subjects"]),
        ('name = "small"', 'name = "small', ["TOML", "line 1"]),
        ('name = "small"', 'name = "small"\nname = "again"', ["TOML"]),
        ("[workload]", "[workload", ["TOML", "line 7"]),
    ],
)
def test_what_is_wrong_is_named(
    written: Callable[[str, str], Path], old: str, new: str, named: list[str]
) -> None:
    message = refusal(written(old, new))
    for word in named:
        assert word in message


def test_a_file_without_subjects_compares_nothing(written: Callable[[str, str], Path]) -> None:
    path = written("buffers", "subjects = []\nbuffers")
    path.write_text(path.read_text().partition("[[subjects]]")[0])
    assert "subjects is empty" in refusal(path)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "missing.toml")
    assert "directory" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe", b'name = "\xe4"', b"\x00"])
def test_a_file_that_is_no_text(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(content)
    refusal(path)


@given(data=st.data())
def test_any_damage_is_refused_in_one_line_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    at = data.draw(st.integers(0, len(VALID)))
    cut = data.draw(st.integers(0, 12))
    inserted = data.draw(st.text(st.characters(codec="utf-8"), max_size=4))
    path.write_text(VALID[:at] + inserted + VALID[at + cut :], encoding="utf-8")
    try:
        read_scenario(path)
    except UsageError:
        refusal(path)


def test_a_shipped_scenario_is_found_by_name_and_a_file_by_its_path(
    written: Callable[[str, str], Path],
) -> None:
    assert load_scenario("mimo-canary").name == "mimo-canary"
    assert load_scenario(str(written("small", "other"))).name == "other"
    with pytest.raises(UsageError) as raised:
        load_scenario("mimo-cannary")
    message = str(raised.value)
    assert len(message.splitlines()) == 1
    for name in ("mimo-cannary", "mimo-canary", "mimo-canary-control"):
        assert name in message


def test_names_are_those_of_the_files(tmp_path: Path) -> None:
    for name in ("b.toml", "a.toml", "notes.md"):
        (tmp_path / name).write_text("")
    assert scenario_names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("name", scenario_names())
def test_every_shipped_scenario_can_be_run(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    engine_config(scenario.engine, scenario.memory, scenario.workload)
    for subject in scenario.subjects:
        assert parse_subject(subject.name).name == subject.name
    assert scenario.expectation(scenario.judging.reference) is Expectation.GOOD


def test_the_canary_has_upstreams_flags() -> None:
    scenario = load_scenario("mimo-canary")
    config = engine_config(scenario.engine, scenario.memory, scenario.workload)
    assert isinstance(config, EngineConfig)
    assert (config.dp_size, config.max_running_requests, config.slots_per_rank) == (2, 128, 64)
    assert (config.cuda_graph_max_bs, config.page_size) == (64, 64)
    assert (config.speculative_num_steps, config.speculative_eagle_topk) == (3, 1)
    assert config.speculative_num_draft_tokens == 4
    assert (scenario.workload.questions, scenario.workload.temperature) == (1319, 0)
    assert scenario.expectation("original") is Expectation.BAD


def test_the_control_is_the_canary_with_nothing_behind_the_short_buffer() -> None:
    canary, control = load_scenario("mimo-canary"), load_scenario("mimo-canary-control")
    assert control.memory.behind_hidden_states == "nothing"
    assert control.memory.padded_rows == canary.memory.padded_rows
    for part in ("workload", "engine", "judging", "symptom", "buffers"):
        assert getattr(control, part) == getattr(canary, part)
    assert control.expectation("original") is Expectation.GOOD


def test_every_scenario_file_is_kebab_case() -> None:
    for path in scenario_folder().glob("*.toml"):
        for key in re.findall(r"^([\w-]+) =", path.read_text(), flags=re.MULTILINE):
            assert "_" not in key
