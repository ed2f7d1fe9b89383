"""Scenarios of the real server: what they state, and that only the server probe serves them."""

from __future__ import annotations

import pytest

from poolbisect.baselines import load_baselines
from poolbisect.canary import RunRequest, probe_contracts
from poolbisect.errors import UsageError
from poolbisect.probes.miniature import engine_config
from poolbisect.probes.server.flags import flags_of, value_of
from poolbisect.scenario import load_scenario, scenario_names, server_scenario_names
from poolbisect.timeline import plans_for

GATES = {
    "mimo-v2-flash": (0.75, 3.2),
    "mimo-v2.5": (0.75, 2.5),
    "nemotron-nano-v2": (0.87, None),
}


def test_they_are_listed_apart() -> None:
    assert set(server_scenario_names()) == set(GATES)
    assert not set(scenario_names()) & set(GATES)
    with pytest.raises(UsageError, match=r"mimo-canary.*mimo-v2-flash"):
        load_scenario("mimo-v3")


@pytest.mark.parametrize("name", GATES)
def test_the_miniature_refuses_them_and_says_how(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.needs_server
    with pytest.raises(UsageError, match="--probe server"):
        scenario.check_probe("miniature")
    scenario.check_probe("server")
    scenario.check_probe("contract")
    load_scenario("mimo-canary").check_probe("miniature")


@pytest.mark.parametrize("name", GATES)
def test_their_pools_can_be_asked_without_a_server(name: str) -> None:
    findings = probe_contracts(RunRequest(load_scenario(name)))
    short = {finding.subject: finding.short for finding in findings}
    assert short == {"corrected": False, "original": name != "nemotron-nano-v2"}


@pytest.mark.parametrize("name", GATES)
def test_they_have_upstreams_gates(name: str) -> None:
    server = load_scenario(name).server
    assert server is not None
    assert server.gate is not None
    assert (server.gate.score, server.gate.accept_length) == GATES[name]
    for baseline in load_baselines(name):
        assert baseline.gate is not None
        assert baseline.gate.score == server.gate.score


@pytest.mark.parametrize("name", GATES)
def test_the_table_of_the_pools_agrees_with_the_flags(name: str) -> None:
    """The contract probe reads [engine], the server gets [server]: they must not disagree."""
    scenario = load_scenario(name)
    config = engine_config(scenario.engine, scenario.memory, scenario.workload)
    flags = flags_of(scenario)
    for option, value in (
        ("--dp", config.dp_size),
        ("--max-running-requests", config.max_running_requests),
        ("--cuda-graph-max-bs", config.cuda_graph_max_bs),
        ("--page-size", config.page_size),
        ("--speculative-num-steps", config.speculative_num_steps),
        ("--speculative-num-draft-tokens", config.speculative_num_draft_tokens),
        ("--max-mamba-cache-size", config.max_mamba_cache_size),
    ):
        stated = value_of(flags, option)
        assert stated is None or stated == str(value), option
    assert ("--enable-multi-layer-eagle" in flags) == scenario.engine.enable_multi_layer_eagle
    (plan,) = plans_for(scenario)
    assert list(plan.buffers) == scenario.buffers


def test_of_the_canary_only_what_the_base_model_can_do_is_asked() -> None:
    flags = flags_of(load_scenario("mimo-canary"))
    assert flags == ("--max-running-requests", "128", "--context-length", "192")


def test_v2_flash_is_upstreams_test() -> None:
    flags = flags_of(load_scenario("mimo-v2-flash"))
    workload = load_scenario("mimo-v2-flash").workload
    assert value_of(flags, "--tp") == "4"
    assert value_of(flags, "--attention-backend") == "fa3"
    assert value_of(flags, "--mem-fraction-static") == "0.75"
    assert (workload.questions, workload.shots, workload.concurrency) == (1314, 5, None)
    (upstream,) = load_baselines("mimo-v2-flash")
    assert (upstream.mean, upstream.spread, upstream.n) == (0.776, 0.011, 1314)
