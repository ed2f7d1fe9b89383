"""Choosing one of lm-eval's scores: several tasks, metrics and filters come in one file."""

from __future__ import annotations

from dataclasses import dataclass

from poolbisect.formats.score_file import Choice, Source

# Columns of lm-eval that describe a task and are no score.
NOT_SCORES = frozenset({"alias", "name", "sample_len", "sample_count"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A score by the name lm-eval gives it; `line` is where it stands in the file."""

    task: str
    metric: str
    filter: str
    value: object
    line: int

    @property
    def name(self) -> str:
        chosen = f"{self.metric},{self.filter}" if self.filter else self.metric
        return f"{self.task}:{chosen}" if self.task else chosen

    def answers_to(self, wanted: str) -> bool:
        parts = self.name.partition(":")
        return wanted in (self.task, self.metric, self.filter, self.name, parts[2])


def choose(found: list[Candidate], source: Source, choice: Choice) -> Candidate:
    """The one score; several are fine only if they agree. UsageError names those to choose from."""
    if not found:
        raise source.error("no score: no metric of any task", 1)
    left = found
    if choice.metric is not None:
        left = [candidate for candidate in found if candidate.answers_to(choice.metric)]
        if not left:
            raise source.error(f"no metric {choice.metric}; there are {_named(found)}")
    if len({candidate.task for candidate in left}) > 1 or any(
        candidate.value != left[0].value for candidate in left
    ):
        raise source.error(
            f"scores that disagree: {_named(left)}; choose one with --metric", left[1].line
        )
    return left[0]


def _named(candidates: list[Candidate]) -> str:
    return ", ".join(
        f"{c.name} = {c.value:.4g}" if isinstance(c.value, float) else f"{c.name} = {c.value}"
        for c in candidates
    )
