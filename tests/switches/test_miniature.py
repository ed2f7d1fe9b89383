"""The whole way on the real miniature, at few questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolbisect.errors import NotApplicableError
from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended
from poolbisect.probes.miniature import Settings
from poolbisect.scenario import load_scenario
from poolbisect.switches.concurrency import concurrencies
from poolbisect.switches.defaults import default_switches
from poolbisect.switches.finding import Answer
from poolbisect.switches.journal import create
from poolbisect.switches.launch import LaunchRequest
from poolbisect.switches.miniature import MiniatureOracle
from poolbisect.switches.plan import Plan
from poolbisect.switches.request import ConfigRequest, open_oracle
from poolbisect.switches.switch import Setting, Switch
from poolbisect.switches.workflow import ConfigReport, config_bisect

QUESTIONS = 200


def _bisect(folder: Path, switches: list[Switch], symptom: str = "accuracy") -> ConfigReport:
    scenario = load_scenario("mimo-canary")
    request = ConfigRequest(
        probe="miniature",
        scenario=scenario,
        subject="original",
        symptom=symptom,
        switches=tuple(switches),
        plan=Plan(),
        questions=QUESTIONS,
        tabulate=False,
    )
    with create(folder / "journal.jsonl", request, [], "2026-01-01T00:00:00+00:00") as session:
        return config_bisect(open_oracle(request, folder), session)


@pytest.mark.slow
def test_speculation_is_the_switch_while_enough_requests_are_in_flight(tmp_path: Path) -> None:
    """Concurrency left at the scenario's: what remains is the feature that has the short buffer."""
    switches = [
        switch
        for switch in default_switches(load_scenario("mimo-canary"))
        if switch.name in ("speculation", "overlap-schedule", "padded-rows")
    ]
    report = _bisect(tmp_path, switches)
    assert report.finding.answer is Answer.CULPRIT
    assert report.finding.culprit == ("speculation",)
    confirmation = report.finding.confirmation
    assert confirmation is not None
    assert confirmation.again.verdict is Verdict.BAD
    assert confirmation.reference is not None
    assert confirmation.reference.verdict is Verdict.GOOD
    for record in report.launches:
        launch = record.launch
        on_original = launch.request.role == "subject"
        broken = on_original and "speculation" in launch.request.on
        assert bool(launch.reads) == broken
        assert (launch.correct < report.launches[0].launch.correct) == broken


def test_a_configuration_that_the_engine_refuses_is_not_a_fault() -> None:
    scenario = load_scenario("mimo-canary")
    steps = Switch("steps", (Setting("speculative-num-draft-tokens", "4", "3"),))
    oracle = MiniatureOracle(
        scenario, "original", [steps], questions=10, settings=Settings(device="cpu")
    )
    launch = oracle.launch(LaunchRequest(("steps",)), lambda words: None)
    assert launch.ended is Ended.NOT_APPLICABLE
    assert "--speculative-num-draft-tokens 3" in launch.detail


def test_accept_length_cannot_be_judged_on_the_reference_itself() -> None:
    scenario = load_scenario("accept-length-canary")
    with pytest.raises(NotApplicableError, match="another --subject"):
        MiniatureOracle(
            scenario, "corrected", default_switches(scenario), questions=10, settings=Settings()
        )


def test_concurrencies_double_up_to_the_most() -> None:
    assert concurrencies(128) == (1, 2, 4, 8, 16, 32, 64, 128)
    assert concurrencies(20) == (1, 2, 4, 8, 16, 20)
    assert concurrencies(1) == (1,)
