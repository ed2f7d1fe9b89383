"""What lies behind the short buffer decides what happens: every placement, DP size and padding.

    python benchmarks/placements.py [--questions 1319] [--section placements|ranks|padding|share]

Each row runs the mimo-canary scenario on `corrected` and `original` with one setting changed and
prints accuracy, accept length, questions lost and gained (paired), out-of-range accesses, and
requests whose live bytes were overwritten. Tables are Markdown, for docs/mimo-canary.md.
"""

from __future__ import annotations

import argparse
import sys
from functools import lru_cache

import msgspec

from poolbisect.engine.config import Behind, PaddedRows
from poolbisect.evidence.paired import compare_paired
from poolbisect.measurement import Ended, Measurement
from poolbisect.models.loading import load_model
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.miniature import Settings, measure
from poolbisect.scenario import Scenario, load_scenario
from poolbisect.tasks.problem_set import load_problems

HEADER = (
    "| {} | corrected | original | lost / gained | p | accept length | "
    "out of range r / w | overwritten | lost elsewhere |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=1319)
    parser.add_argument(
        "--section", choices=("placements", "ranks", "padding", "share"), default="placements"
    )
    options = parser.parse_args()
    sections = {
        "placements": _placements,
        "ranks": _ranks,
        "padding": _padding,
        "share": _share,
    }
    sections[options.section](options.questions)


def _placements(questions: int) -> None:
    _header("what lies behind")
    for behind in Behind:
        _row(behind.value, _changed(behind=behind.value), questions)


def _ranks(questions: int) -> None:
    _header("DP ranks (slots each)")
    for dp_size in (1, 2, 4, 8):
        _row(f"{dp_size} ({128 // dp_size})", _changed(dp_size=dp_size), questions)


def _padding(questions: int) -> None:
    _header("padded rows, what lies behind")
    for behind in (Behind.FUTURE_VERIFIED_IDS, Behind.UPSTREAM_ORDER):
        for padded in PaddedRows:
            scenario = _changed(behind=behind.value, padded_rows=padded.value)
            _row(f"{padded.value}, {behind.value}", scenario, questions)


def _share(questions: int) -> None:
    print("| DP ranks | slots each | requests on the last slot, predicted | measured |")
    print("|---|---|---|---|")
    for dp_size in (1, 2, 4, 8):
        measured = _measure("corrected", _changed(dp_size=dp_size), questions)
        assert measured.slots is not None
        slots = 128 // dp_size
        # First in, first out: each rank's slots come round in turn.
        predicted = sum(
            (questions // dp_size + (rank < questions % dp_size)) // slots
            for rank in range(dp_size)
        )
        print(f"| {dp_size} | {slots} | {predicted} | {measured.slots.requests_on_last_slot} |")


def _changed(
    behind: str | None = None, dp_size: int | None = None, padded_rows: str | None = None
) -> Scenario:
    scenario = load_scenario("mimo-canary")
    memory, engine = scenario.memory, scenario.engine
    if behind is not None:
        memory = msgspec.structs.replace(memory, behind_hidden_states=behind)
    if padded_rows is not None:
        memory = msgspec.structs.replace(memory, padded_rows=padded_rows)
    if dp_size is not None:
        engine = msgspec.structs.replace(engine, dp_size=dp_size)
    return msgspec.structs.replace(scenario, memory=memory, engine=engine)


def _header(first: str) -> None:
    print(HEADER.format(first))
    print("|---" * HEADER.count("|", 1) + "|")


def _row(label: str, scenario: Scenario, questions: int) -> None:
    good, bad = (_measure(name, scenario, questions) for name in ("corrected", "original"))
    if bad.ended is not Ended.MEASURED:
        print(f"| {label} | {good.accuracy:.3f} | {bad.ended.value}: {bad.detail} | | | | | | |")
        return
    paired = compare_paired(good.outcomes(), bad.outcomes())
    memory = bad.memory
    elsewhere = len(set(paired.lost_ids) - set(memory.offenders))
    print(
        f"| {label} | {good.accuracy:.3f} | {bad.accuracy:.3f} | {paired.lost} / {paired.gained} | "
        f"{paired.p_value:.2g} | {good.accept_length:.2f} → {bad.accept_length:.2f} | "
        f"{memory.reads} / {memory.writes} | {len(memory.victims)} | {elsewhere} |"
    )
    sys.stdout.flush()


def _measure(subject: str, scenario: Scenario, questions: int) -> Measurement:
    return measure(
        subject,
        ShippedPools(subject),
        scenario,
        load_problems(scenario.workload.task, questions),
        _model(scenario.workload.model),
        Settings(),
    )


_model = lru_cache(load_model)


if __name__ == "__main__":
    main()
