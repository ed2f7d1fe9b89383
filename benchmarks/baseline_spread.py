"""How far the healthy miniature's score moves when nothing that matters changes (A/A runs).

    python benchmarks/baseline_spread.py

Serves the mimo-canary problems on the corrected pools under settings that must not change an
answer, and prints right answers, accept length and how many questions flip against the first run.
"""

from __future__ import annotations

from typing import Any

import msgspec

from poolbisect.evidence.paired import compare_paired
from poolbisect.measurement import Measurement
from poolbisect.models.loading import load_model
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.miniature import Settings, measure
from poolbisect.scenario import load_scenario
from poolbisect.tasks.problem_set import load_problems

SETTINGS: dict[str, dict[str, Any]] = {
    "as in the scenario": {},
    "4 ranks": {"dp_size": 4},
    "8 ranks": {"dp_size": 8},
    "1 rank": {"dp_size": 1},
    "32 requests at once": {"max_running_requests": 32},
    "no overlap scheduling": {"disable_overlap_schedule": True},
    "2 draft steps": {"speculative_num_steps": 2, "speculative_num_draft_tokens": 3},
    "no speculation": {"speculative_algorithm": None},
}


def main() -> None:
    scenario = load_scenario("mimo-canary")
    workload = scenario.workload
    problems = load_problems(workload.task, workload.questions)
    model = load_model(workload.model)
    first: Measurement | None = None
    print("| setting | right | accuracy | accept length | flips |")
    print("|---|---|---|---|---|")
    for label, changes in SETTINGS.items():
        engine = msgspec.structs.replace(scenario.engine, **changes)
        changed = msgspec.structs.replace(scenario, engine=engine)
        pools = ShippedPools("corrected")
        measured = measure("corrected", pools, changed, problems, model, Settings())
        first = first or measured
        paired = compare_paired(first.outcomes(), measured.outcomes())
        length = "-" if measured.accept_length is None else f"{measured.accept_length:.2f}"
        print(
            f"| {label} | {measured.correct} | {measured.accuracy:.4f} | "
            f"{length} | {paired.lost + paired.gained} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
