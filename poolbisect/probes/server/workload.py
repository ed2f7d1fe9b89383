"""From a scenario and the user's options to what a server is asked, and how."""

from __future__ import annotations

from pathlib import Path

from poolbisect.errors import UsageError
from poolbisect.evidence.comparability import BaselineKey
from poolbisect.probes.server.options import ServerOptions
from poolbisect.probes.server.passes import HowToAsk
from poolbisect.probes.server.questions import (
    QuestionSet,
    few_shot_questions,
    miniature_questions,
)
from poolbisect.scenario import Scenario
from poolbisect.tasks.problem_set import NAME as MINIATURE

EXPORTED = "mimo-miniature-base"
"""What baselines call the model that `poolbisect export-model` writes: its base layers alone."""


def questions_for(
    scenario: Scenario | None, options: ServerOptions, count: int | None = None
) -> QuestionSet:
    """Everything there is to ask, or the first `count` questions of it.

    Raises:
        UsageError: the task needs a file that was not given, or there are not that many.
    """
    workload = None if scenario is None else scenario.workload
    if options.evaluation is not None:
        shots = options.shots
        if shots is None:
            shots = workload.shots if workload is not None and workload.shots else 5
        limit = workload.max_new_tokens if workload is not None else 512
        wanted = count
        if wanted is None and workload is not None and workload.task != MINIATURE:
            wanted = workload.questions
        return few_shot_questions(Path(options.evaluation), shots, wanted, limit)
    if workload is not None and workload.task != MINIATURE:
        raise UsageError(
            f"{scenario.name if scenario else ''} asks {workload.task}, which is not shipped: give "
            "its questions with --eval FILE.jsonl, one {question, answer} a line"
        )
    return miniature_questions(count, workload.max_new_tokens if workload is not None else 96)


def how_to_ask(scenario: Scenario | None, options: ServerOptions) -> HowToAsk:
    workload = None if scenario is None else scenario.workload
    return HowToAsk(
        concurrency=options.concurrency or (workload.concurrency if workload else None),
        question_timeout=options.question_timeout,
        temperature=workload.temperature if workload else 0.0,
        seed=workload.seed if workload and workload.temperature else None,
    )


def model_for(scenario: Scenario | None, options: ServerOptions) -> str:
    """What is served: --model, or the scenario's. UsageError for a miniature without a folder."""
    if options.model is not None:
        return options.model
    if scenario is not None and scenario.needs_server:
        return scenario.workload.model
    raise UsageError(
        "the server needs a model: write the miniature's with `poolbisect export-model DIR` and "
        "give it with --model DIR"
    )


def server_key(
    scenario: Scenario, questions: QuestionSet, options: ServerOptions, hardware: str
) -> BaselineKey:
    """What must agree before a server's score is compared with a recorded one."""
    flags, workload = scenario.engine, scenario.workload
    mode = "plain"
    if scenario.server is not None and flags.speculative_algorithm is not None:
        mode = f"{flags.speculative_algorithm.lower()}-{flags.speculative_num_steps}"
    ranks = flags.dp_size if scenario.server is not None else 1
    temperature = workload.temperature
    return BaselineKey(
        model=workload.model if scenario.server is not None else EXPORTED,
        task=questions.task,
        n=len(questions),
        shots=questions.shots,
        sampling="greedy" if temperature == 0 else f"temperature {temperature:g}",
        hardware=hardware,
        engine_mode=f"{mode} dp{ranks}",
        harness_version=questions.harness,
    )
