""".github/workflows/nightly.yml: valid, without what zizmor finds, pinned, and its scripts work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "nightly.yml"
needs_jq = pytest.mark.skipif(
    shutil.which("jq") is None or sys.platform != "linux", reason="needs jq and GNU tools"
)


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
    return found


def tool(name: str) -> str:
    found = shutil.which(
        name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    assert found is not None, f"{name} is part of the test extra"
    return found


def step(workflow: dict[str, Any], job: str, name: str) -> str:
    return str(next(one for one in workflow["jobs"][job]["steps"] if one["name"] == name)["run"])


def test_it_fits_the_schema_of_workflows() -> None:
    command = [tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, WORKFLOW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing_in_it() -> None:
    command = [tool("zizmor"), "--offline", "--persona=pedantic", "--no-progress"]
    done = subprocess.run([*command, WORKFLOW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actions_are_pinned_by_commit_and_say_which_version(workflow: dict[str, Any]) -> None:
    used = [line for line in WORKFLOW.read_text().splitlines() if "uses:" in line]
    assert len(used) == sum(
        "uses" in one for job in workflow["jobs"].values() for one in job["steps"]
    )
    for line in used:
        assert re.search(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_only_the_issue_job_may_write_and_only_issues(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {}
    allowed = {name: job["permissions"] for name, job in workflow["jobs"].items()}
    assert allowed == {"nightly": {"contents": "read"}, "issue": {"issues": "write"}}


def test_it_runs_on_a_schedule_and_when_asked_and_never_twice_at_once(
    workflow: dict[str, Any],
) -> None:
    triggers = workflow[True]  # YAML 1.1 reads the key `on` as a truth value
    assert set(triggers) == {"schedule", "workflow_dispatch"}
    assert workflow["concurrency"]["cancel-in-progress"] is False


@needs_jq
def test_the_issue_holds_hostile_titles_as_code_and_is_opened_once(
    workflow: dict[str, Any], tmp_path: Path
) -> None:
    """The step itself, with a `gh` that writes down what it is told."""
    title = "`@team` $(touch pwned) <script>\n# heading"
    finding = {
        "state": "new",
        "scenario": "mimo-canary",
        "subject": "commit:abc",
        "since": "2026-05-01",
        "lost": 74,
        "gained": 0,
        "text": "accuracy fell",
        "culprit": {"commit": "a" * 40, "title": title, "confirmed": True},
    }
    quiet = finding | {"scenario": "quiet", "culprit": finding["culprit"] | {"confirmed": False}}  # type: ignore[operator]
    folder = tmp_path / "artifact" / "reports" / "nightly" / "20260501T030000Z"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps({"findings": [finding, quiet]}))
    tools = tmp_path / "bin"
    tools.mkdir()
    gh = tools / "gh"
    gh.write_text('#!/bin/sh\necho "$*" >> calls\n[ "$1 $2" = "issue list" ] && cat open\nexit 0\n')
    gh.chmod(0o755)
    script = step(workflow, "issue", "Open the issue, or update the one that is open")
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "RUN": "here"}

    def told(open_issue: str) -> list[str]:
        (tmp_path / "open").write_text(open_issue)
        (tmp_path / "calls").unlink(missing_ok=True)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
        return (tmp_path / "calls").read_text().splitlines()

    assert told("")[-1].startswith("issue create")
    assert told("17\n")[-1].startswith("issue comment 17")
    assert not (tmp_path / "pwned").exists()
    body = (tmp_path / "body.md").read_text()
    assert "74 questions lost" in body
    assert "quiet" not in body
    hostile = [line for line in body.splitlines() if "script" in line]
    assert hostile == ["    `@team` $(touch pwned) <script> # heading"]


@needs_jq
@pytest.mark.parametrize(("code", "confirmed"), [(1, True), (0, False)])
def test_the_night_step_hands_on_the_exit_code_and_whether_a_culprit_is_confirmed(
    workflow: dict[str, Any], tmp_path: Path, code: int, confirmed: bool
) -> None:
    """The step itself, with a `poolbisect` that leaves a night behind."""
    document = {"findings": [{"culprit": None}, {"culprit": {"confirmed": confirmed}}]}
    (tmp_path / "night.json").write_text(json.dumps(document))
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "poolbisect"
    command.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > words\nmkdir -p reports/nightly/1\n'
        f"cp night.json reports/nightly/1/result.json\nexit {code}\n"
    )
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_OUTPUT": "outputs",
        "SUBJECT": "original; touch pwned",
        "QUESTIONS": "",
    }
    script = step(workflow, "nightly", "Run the night")
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        check=True,
    )
    outputs = dict(line.split("=", 1) for line in (tmp_path / "outputs").read_text().splitlines())
    assert outputs["status"] == str(code)
    assert outputs["confirmed"] == str(confirmed).lower()
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:3] == ["nightly", "--out", "reports"]
    assert words[-2:] == ["--subject", "original; touch pwned"]
    assert not (tmp_path / "pwned").exists()
