"""On a server: real processes and sockets, flags that reach it, no server left behind."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from poolbisect.errors import UsageError
from poolbisect.probes.server.options import ServerOptions, stored
from poolbisect.scenario import Scenario, Symptom, load_scenario
from poolbisect.switches.finding import Answer
from poolbisect.switches.journal import create
from poolbisect.switches.plan import Plan
from poolbisect.switches.request import ConfigRequest, open_oracle
from poolbisect.switches.server import ServerOracle
from poolbisect.switches.switch import parse_switch
from poolbisect.switches.workflow import config_bisect

STAND_IN = Path(__file__).parents[1] / "probes" / "server" / "stand_in" / "server.py"


def _scenario(symptom: Symptom) -> Scenario:
    return msgspec.structs.replace(load_scenario("mimo-canary"), symptom=symptom)


def _options(folder: Path) -> ServerOptions:
    return ServerOptions(
        model="stand-in",
        command=("{python}", str(STAND_IN), "--host", "{host}", "--port", "{port}", "{flags}"),
        leases=folder / "leases",
        environments=folder / "environments",
        health_timeout=60.0,
        question_timeout=30.0,
        grace=3.0,
    )


@pytest.mark.slow
def test_the_flag_that_crashes_a_server_is_found(tmp_path: Path) -> None:
    request = ConfigRequest(
        probe="server",
        scenario=_scenario(Symptom.CRASH),
        subject="installed",
        symptom="crash",
        switches=(
            parse_switch("concurrency=4:16"),
            parse_switch("fault=none:illegal"),
            parse_switch("delay=0:0.1"),
        ),
        plan=Plan(),
        questions=20,
        options=stored(_options(tmp_path)),
    )
    with create(tmp_path / "journal.jsonl", request, [], "2026-01-01T00:00:00+00:00") as session:
        report = config_bisect(open_oracle(request, tmp_path), session)
    assert report.finding.answer is Answer.CULPRIT
    assert report.finding.culprit == ("fault",)
    assert "illegal memory access" in report.finding.reason
    assert len(report.launches) <= 8
    for record in report.launches:
        assert record.launch.log is not None
        assert (tmp_path / record.launch.log).is_file()


def test_what_a_server_cannot_be_asked_is_said_before_a_launch(tmp_path: Path) -> None:
    switch = parse_switch("memory.padded-rows=zeroed:stale")
    with pytest.raises(UsageError, match=r"switch memory\.padded-rows: a server's switches"):
        ServerOracle(
            _scenario(Symptom.ACCURACY), "installed", (switch,), _options(tmp_path),
            folder=tmp_path, questions=5,
        )  # fmt: skip
    with pytest.raises(UsageError, match="not accept-length"):
        ServerOracle(
            _scenario(Symptom.ACCEPT_LENGTH), "installed", (), _options(tmp_path),
            folder=tmp_path, questions=5,
        )  # fmt: skip
    with pytest.raises(UsageError, match="concurrency: it does not take '0'"):
        ServerOracle(
            _scenario(Symptom.CRASH), "installed", (parse_switch("concurrency=0:1"),),
            _options(tmp_path), folder=tmp_path, questions=5,
        )  # fmt: skip
