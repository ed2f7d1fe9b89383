"""From the options of `bisect --config` to what is asked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from poolbisect.cli.command_options import options_of
from poolbisect.cli.server_options import options_from
from poolbisect.errors import UsageError
from poolbisect.probes.command.options import stored as stored_command
from poolbisect.scenario import Scenario, Symptom, load_scenario
from poolbisect.switches.defaults import default_switches
from poolbisect.switches.plan import Plan
from poolbisect.switches.request import ConfigRequest
from poolbisect.switches.server_defaults import server_switches
from poolbisect.switches.switch import Switch, check_distinct, parse_switch, read_switches


def request_of(given: Mapping[str, Any]) -> ConfigRequest:
    """What the options ask. UsageError where they do not fit together."""
    probe = given["probe"]
    plan = Plan(given["repeats"], given["noise"], gate=given["gate"])
    shared = {
        "probe": probe,
        "questions": given["questions"],
        "tabulate": given["tabulate"],
        "seed": given["seed"],
        "device": given["device"],
        "plan": plan,
    }
    if probe == "command":
        return _command_request(given, shared)
    if given["arguments"]:
        raise UsageError(f"{given['arguments'][0]!r}: only --probe command takes a command")
    if given["scenario"] is None:
        raise UsageError("--config needs --scenario; `poolbisect scenarios` lists them")
    if probe == "miniature" and given["gate"] is not None:
        raise UsageError(
            "--gate is not for --probe miniature, where everything off is judged against the "
            "scenario's reference"
        )
    scenario = _with_symptom(load_scenario(given["scenario"]), given["symptom"])
    scenario.check_probe(probe)
    defaults = server_switches(scenario) if probe == "server" else default_switches(scenario)
    switches = _chosen(defaults, given)
    judging = scenario.judging
    shared["plan"] = replace(plan, alpha=judging.alpha, smallest_drop=judging.smallest_drop)
    return ConfigRequest(
        scenario=scenario,
        subject=given["subject"] or _suspect(scenario),
        symptom=scenario.symptom.value,
        switches=switches,
        folder=None if given["repo"] is None else str(given["repo"].resolve()),
        options=_server_options(given["server"], scenario, switches) if probe == "server" else {},
        **shared,
    )


def _command_request(given: Mapping[str, Any], shared: dict[str, Any]) -> ConfigRequest:
    for name in ("scenario", "subject", "symptom", "repo"):
        if given[name] is not None:
            raise UsageError(f"--{name} is not for --probe command; leave it out")
    for name, instead in (("flaky", "--noise"), ("keep_build", "nothing")):
        if given[name]:
            raise UsageError(
                f"--{name.replace('_', '-')} is for a bisect over commits; with --config give "
                f"{instead} instead"
            )
    options = options_of(given)
    argv = given["arguments"]
    return ConfigRequest(
        scenario=None,
        subject=shlex.join(argv),
        symptom=options.bad_if.value,
        switches=_chosen([], given),
        folder=str(Path.cwd()),
        options=stored_command(argv, options),
        **shared,
    )


def _server_options(
    given: Mapping[str, Any], scenario: Scenario, switches: Sequence[Switch]
) -> dict[str, Any]:
    from poolbisect.probes.server.options import stored

    for name, instead in (("rule", "--gate"), ("rounds", "--repeats"), ("eval_command", "--eval")):
        if given[name] not in (None, ()):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is not for --config; use {instead}")
    keys = {setting.key for switch in switches for setting in switch.settings}
    if given["concurrency"] is not None and "concurrency" in keys:
        raise UsageError(
            "--concurrency is what the switch concurrency sets; leave one out, such as with "
            "--without concurrency"
        )
    return stored(options_from(given, scenario))


def _chosen(defaults: Sequence[Switch], given: Mapping[str, Any]) -> tuple[Switch, ...]:
    """The switches to try: those given, else the defaults, less those left out. UsageError."""
    texts, file, without = given["switch_texts"], given["switch_file"], given["without"]
    switches = [parse_switch(text, defaults) for text in texts]
    if file is not None:
        switches += read_switches(file)
    if not texts and file is None:
        switches = list(defaults)
    names = [switch.name for switch in switches]
    unknown = [name for name in without if name not in names]
    if unknown:
        raise UsageError(f"--without {unknown[0]}: the switches are {', '.join(names) or 'none'}")
    kept = tuple(switch for switch in switches if switch.name not in without)
    check_distinct(kept)
    return kept


def _with_symptom(scenario: Scenario, symptom: str | None) -> Scenario:
    if symptom is None:
        return scenario
    return msgspec.structs.replace(scenario, symptom=Symptom(symptom))


def _suspect(scenario: Scenario) -> str:
    """The subject the scenario expects to be bad. UsageError without one, or with several."""
    bad = [one.name for one in scenario.subjects if one.expect.value == "bad"]
    if len(bad) != 1:
        raise UsageError(
            f"{scenario.name} names {len(bad)} subjects as bad; say which to launch with --subject"
        )
    return bad[0]
