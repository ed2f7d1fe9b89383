"""A search that is ended at any moment goes on where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.evidence.verdict import Verdict
from poolbisect.measurement import Ended
from poolbisect.reporting.files import write_reports
from poolbisect.switches import journal
from poolbisect.switches.document import config_document, encode
from poolbisect.switches.finding import Answer
from poolbisect.switches.launch import Launch, LaunchRequest, Traits, Watch
from poolbisect.switches.ledger import Ledger
from poolbisect.switches.workflow import config_bisect
from tests.switches.planted import PlantedOracle, asked, find_in, planted

ORDER = [f"s{number}" for number in range(8)]
AT = "2026-01-01T00:00:00+00:00"


def test_cut_anywhere_a_resumed_search_repeats_at_most_one_launch(tmp_path: Path) -> None:
    whole = PlantedOracle(planted({"s2", "s5"}))
    answer = find_in(tmp_path / "whole", ORDER, whole)
    text = (tmp_path / "whole").read_bytes()
    for number, end in enumerate(range(text.find(b"\n") + 1, len(text), 401)):
        path = tmp_path / f"cut-{number}"
        path.write_bytes(text[:end])
        kept = text[:end].count(b'"launch_ended"')
        kept -= not text[:end].endswith(b"\n") and b'"launch_ended"' in text[:end].split(b"\n")[-1]
        rest = PlantedOracle(planted({"s2", "s5"}))
        resumed = find_in(path, ORDER, rest)
        assert resumed.culprit == answer.culprit
        assert rest.launches == whole.launches[kept:]


def test_a_finished_search_resumes_without_a_launch(tmp_path: Path) -> None:
    find_in(tmp_path / "j", ORDER, PlantedOracle(planted({"s1"})))
    again = PlantedOracle(planted({"s1"}))
    found = find_in(tmp_path / "j", ORDER, again)
    assert found.culprit == ("s1",)
    assert again.launches == []


def test_a_session_keeps_what_was_asked(tmp_path: Path) -> None:
    find_in(tmp_path / "j", ORDER, PlantedOracle(planted({"s1"})))
    with journal.resume(tmp_path / "j", AT) as session:
        assert session.request == asked(ORDER)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    find_in(tmp_path / "j", ORDER, PlantedOracle(planted({"s1"})))
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    lines[3] = b"{}\n"
    (tmp_path / "j").write_bytes(b"".join(lines))
    with (
        pytest.raises(UsageError, match="line 4: not a journal line"),
        journal.resume(tmp_path / "j", AT),
    ):
        pass


def test_two_processes_cannot_hold_one_session(tmp_path: Path) -> None:
    with (
        journal.create(tmp_path / "j", asked(ORDER), [], AT),
        pytest.raises(UsageError, match="another poolbisect"),
        journal.resume(tmp_path / "j", AT),
    ):
        pass


class _Host:
    """Fails `failures` times, then works."""

    def __init__(self, failures: int) -> None:
        self.traits = Traits("host")
        self.left = failures
        self.count = 0

    def launch(self, request: LaunchRequest, watch: Watch) -> Launch:
        self.count += 1
        self.left -= 1
        ended = Ended.INFRA if self.left >= 0 else Ended.MEASURED
        return Launch(request=request, ended=ended, detail="no device", correct=1, asked=1)

    def close(self) -> None:
        """Nothing is kept."""


def test_a_launch_that_the_host_spoilt_does_not_count(tmp_path: Path) -> None:
    host = _Host(2)
    with journal.create(tmp_path / "j", asked(ORDER), [], AT) as session:
        launch = Ledger(host, session).nth(LaunchRequest(()), 0, "all off")
    assert launch.ended is Ended.MEASURED
    assert host.count == 3


def test_a_host_that_keeps_failing_ends_the_search_and_can_be_resumed(tmp_path: Path) -> None:
    with (
        journal.create(tmp_path / "j", asked(ORDER), [], AT) as session,
        pytest.raises(InfrastructureError, match="no device"),
    ):
        Ledger(_Host(9), session).nth(LaunchRequest(()), 0, "all off")
    with journal.resume(tmp_path / "j", AT) as session:
        launch = Ledger(_Host(0), session).nth(LaunchRequest(()), 0, "all off")
    assert launch.ended is Ended.MEASURED


def test_ctrl_c_is_an_answer_and_the_search_goes_on_from_there(tmp_path: Path) -> None:
    oracle = PlantedOracle(planted({"s1"}))
    rule = oracle.rule

    def interrupted(on: frozenset[str]) -> Verdict:
        if len(oracle.launches) == 4:
            raise KeyboardInterrupt
        return rule(on)

    oracle.rule = interrupted
    with journal.create(tmp_path / "j", asked(ORDER), [], AT) as session:
        report = config_bisect(oracle, session)
    assert report.finding.answer is Answer.INTERRUPTED
    assert report.exit_code == 130
    assert len(report.launches) == 3
    rest = PlantedOracle(planted({"s1"}))
    assert find_in(tmp_path / "j", ORDER, rest).culprit == ("s1",)
    assert rest.launches[0] == oracle.launches[3]


def test_a_failing_host_is_an_answer(tmp_path: Path) -> None:
    with journal.create(tmp_path / "j", asked(ORDER), [], AT) as session:
        report = config_bisect(_Host(9), session)
    assert report.finding.answer is Answer.INFRASTRUCTURE
    assert report.exit_code == 3
    document = config_document(report, tmp_path, ["poolbisect"], {})
    assert document["partial"]
    assert [one["ended"] for one in document["launches"]] == ["infra"] * 3
    (tmp_path / "result.json").write_bytes(encode(document))
    write_reports(tmp_path)
    assert "infrastructure failure" in (tmp_path / "report.md").read_text()
