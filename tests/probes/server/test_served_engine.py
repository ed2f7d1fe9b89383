"""The real model behind a real socket: what the server answers is what the engine answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from poolbisect.canary import RunRequest
from poolbisect.engine.config import Behind, EngineConfig
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Request
from poolbisect.errors import UsageError
from poolbisect.evidence.paired import compare_paired
from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended, Measurement
from poolbisect.models.loading import load_mimo
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.server.options import ServerOptions
from poolbisect.scenario import Server, ServerGate, load_scenario
from poolbisect.server_canary import run_on_servers
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems

QUESTIONS = 32


@pytest.mark.slow
def test_original_pools_lose_answers_through_the_server_as_they_do_without(
    serve: Callable[..., Measurement],
) -> None:
    served = {
        pools: serve("", "--brain", "engine", "--pools", pools, questions=QUESTIONS, folder=pools)
        for pools in ("corrected", "original")
    }
    assert all(found.ended is Ended.MEASURED for found in served.values())
    engine = Engine(
        EngineConfig(max_running_requests=8, behind_hidden_states=Behind.FUTURE_VERIFIED_IDS),
        load_mimo(),
        ShippedPools("corrected"),
    )
    requests = [
        Request(str(p.id), arithmetic.prompt_tokens(p), 96, arithmetic.EOS)
        for p in load_problems(NAME, QUESTIONS)
    ]
    engine.run(requests)
    texts = [arithmetic.decode(request.output) for request in requests]
    # Batches differ, so a near-tie may fall the other way.
    same = sum(a.text == b for a, b in zip(served["corrected"].answers, texts, strict=True))
    assert same >= QUESTIONS - 1
    compared = compare_paired(served["corrected"].outcomes(), served["original"].outcomes())
    assert compared.lost > compared.gained
    assert (served["corrected"].accept_length or 0) > (served["original"].accept_length or 0) > 1


def test_a_run_on_servers_is_judged_by_the_first_and_by_upstreams_gate(
    tmp_path: Path, options: Callable[..., ServerOptions]
) -> None:
    canary = load_scenario("mimo-canary")
    request = RunRequest(canary, questions=20)
    alone = run_on_servers(request, options(), tmp_path / "alone")
    assert (alone.exit_code, alone.scenario.judging.reference) == (4, "installed")
    (verdict,) = alone.verdicts
    assert verdict.verdict is Verdict.UNKNOWN
    assert "nothing to compare its score with" in verdict.reason
    assert "model: baseline mimo-miniature, run mimo-miniature-base" in verdict.baseline_note


@pytest.mark.parametrize(
    ("length", "reason"),
    [
        ("3.3", "accuracy 0.000 is below upstream's gate of 0.75"),
        ("3.2", "accept length 3.20 is not above upstream's gate of 3.2"),
    ],
)
def test_a_score_below_upstreams_gate_is_a_regression(
    tmp_path: Path, options: Callable[..., ServerOptions], length: str, reason: str
) -> None:
    server = Server(flags=[], gate=ServerGate(score=0.75, accept_length=3.2))
    scenario = msgspec.structs.replace(load_scenario("mimo-canary"), server=server)
    flags = ("--fault", "nan", "--accept-length", length)
    found = run_on_servers(RunRequest(scenario, questions=20), options(*flags), tmp_path / "run")
    assert found.exit_code == 1
    assert reason in found.verdicts[0].reason


def test_an_evaluation_without_answers_cannot_be_compared(
    tmp_path: Path, options: Callable[..., ServerOptions]
) -> None:
    chosen = options(eval_command=("true",), asked=1)
    with pytest.raises(UsageError, match="--eval-command is for bisect"):
        run_on_servers(RunRequest(load_scenario("mimo-canary")), chosen, tmp_path)
