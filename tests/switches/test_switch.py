"""Switches as the user writes them, as a scenario's settings, and as flags."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.errors import UsageError
from poolbisect.probes.miniature import engine_config
from poolbisect.scenario import load_scenario, scenario_names
from poolbisect.switches.configured import configured
from poolbisect.switches.defaults import default_switches
from poolbisect.switches.flags import flags_for, value_in, with_flags
from poolbisect.switches.server_defaults import server_switches
from poolbisect.switches.switch import (
    Setting,
    Switch,
    check_distinct,
    parse_switch,
    read_switches,
    states,
)


def test_a_switch_is_a_key_and_two_states() -> None:
    switch = parse_switch("--disable-overlap-schedule=true:false")
    assert switch.name == "disable-overlap-schedule"
    assert states([switch], []) == {"disable-overlap-schedule": "true"}
    assert states([switch], [switch.name]) == {"disable-overlap-schedule": "false"}


def test_settings_that_go_together_are_one_switch() -> None:
    switch = parse_switch("dp-size=1:2,enable-dp-attention=false:true")
    assert states([switch], ["dp-size"]) == {"dp-size": "2", "enable-dp-attention": "true"}


def test_a_known_switch_goes_by_its_name() -> None:
    known = default_switches(load_scenario("mimo-canary"))
    assert parse_switch("speculation", known) in known
    with pytest.raises(UsageError, match="known by name: concurrency, speculation"):
        parse_switch("speculations", known)


@pytest.mark.parametrize("text", ["page-size=1", "=1:2", "page-size=1:2,", "a=1:2,b"])
def test_what_is_no_switch_says_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match="page-size=1:64"):
        parse_switch(text)


@given(st.text())
def test_any_text_is_a_switch_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        assert parse_switch(text).settings


def test_switches_of_one_key_or_none_are_refused() -> None:
    with pytest.raises(UsageError, match="both set page-size"):
        check_distinct(
            [parse_switch("page-size=1:64"), Switch("other", (Setting("page-size", "1", "2"),))]
        )
    with pytest.raises(UsageError, match="given twice"):
        check_distinct([parse_switch("page-size=1:64")] * 2)
    with pytest.raises(UsageError, match="no switch to try"):
        check_distinct([])


def test_a_file_of_switches(tmp_path: Path) -> None:
    file = tmp_path / "switches.toml"
    file.write_text(
        '[[switch]]\nname = "speculation"\n'
        'off = { speculative-algorithm = "none", speculative-num-steps = 0 }\n'
        'on = { speculative-algorithm = "EAGLE", speculative-num-steps = 3 }\n'
    )
    (switch,) = read_switches(file)
    assert switch.words(True) == "speculative-algorithm EAGLE, speculative-num-steps 3"
    file.write_text('[[switch]]\nname = "a"\noff = { x = 1 }\non = { y = 1 }\n')
    with pytest.raises(UsageError, match=r"switches\.toml: switch a: x is in one of off and on"):
        read_switches(file)
    file.write_text('[[switch]]\nname = "a"\noff = { x = 1 }\non = { x = 2 }\nstate = 1\n')
    with pytest.raises(UsageError, match="unknown key `state`"):
        read_switches(file)


def test_settings_reach_the_table_that_has_the_key() -> None:
    scenario = configured(
        load_scenario("mimo-canary"),
        {"page-size": "1", "padded-rows": "zeroed", "concurrency": "4", "engine.dp-size": "1"},
    )
    assert scenario.engine.page_size == 1
    assert scenario.memory.padded_rows == "zeroed"
    assert scenario.workload.concurrency == 4
    assert scenario.engine.dp_size == 1
    assert configured(scenario, {"concurrency": "none"}).workload.concurrency is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("page", "1", "switch page: a scenario has no such key"),
        ("page-size", "x", "switch page-size: it does not take 'x'"),
        ("page-size", "0", "switch page-size: it does not take '0'"),
        ("memory.page-size", "1", "no such key"),
        ("questions", "10", "all launches ask the same questions"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(key: str, value: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        configured(load_scenario("mimo-canary"), {key: value})


@pytest.mark.parametrize("name", scenario_names())
def test_default_switches_lead_from_a_plain_server_to_the_scenarios(name: str) -> None:
    scenario = load_scenario(name)
    switches = default_switches(scenario)
    check_distinct(switches)
    on = configured(scenario, states(switches, [switch.name for switch in switches]))
    assert on.engine == scenario.engine
    assert on.memory == scenario.memory
    off = configured(scenario, states(switches, []))
    config = engine_config(off.engine, off.memory, off.workload)
    assert not config.speculative
    assert config.dp_size == 1
    assert config.disable_overlap_schedule
    assert config.page_size == 1


def test_switches_of_the_real_server_are_its_features() -> None:
    names = [switch.name for switch in server_switches(load_scenario("mimo-v2-flash"))]
    assert names == [
        *("concurrency", "speculation", "dp-attention", "overlap-schedule", "cuda-graphs"),
        *("radix-cache", "attention-backend", "page-size"),
    ]


def test_flags_of_a_state_replace_those_of_the_server() -> None:
    base = ["--tp", "4", "--page-size=64", "--disable-radix-cache", "--dp", "2", "--trust"]
    settings = {"page-size": "1", "dp": "none", "disable-radix-cache": "false", "trust": "true"}
    assert with_flags(base, settings) == ["--tp", "4", "--page-size", "1", "--trust"]
    assert with_flags([], {"SGLANG_X": "1", "a": "true"}) == ["--a"]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z-]{0,8}[a-z]", fullmatch=True),
        st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True),
    )
)
def test_flags_are_read_back_as_they_were_set(settings: dict[str, str]) -> None:
    flags = with_flags(flags_for(dict.fromkeys(settings, "earlier")), settings)
    for key, value in settings.items():
        given_value = None if value in ("none", "false") else value
        assert value_in(flags, f"--{key}") == given_value
