"""One order of questions for all runs, so that the same question has the same number in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from poolbisect.formats.score_file import QuestionId

_FEWEST_KNOWN = 0.5


class OtherQuestionsError(Exception):
    """A run answered other questions than the runs before it."""


class QuestionOrder:
    """Numbers of questions by id: first come, first numbered; whole numbers in their own order.

    Kept in a file, since a bisect may be left and resumed. `is_fixed`: every run asks the same
    questions, so later ids get no number.
    """

    def __init__(self, file: Path, *, is_fixed: bool) -> None:
        self._file = file
        self._is_fixed = is_fixed
        self._number: dict[QuestionId, int] = {}
        if file.is_file():
            known: list[QuestionId] = msgspec.json.decode(file.read_bytes(), type=list[int | str])
            self._number = {question: number for number, question in enumerate(known)}

    def outcomes(self, answers: Mapping[QuestionId, bool], offset: int) -> tuple[str, int]:
        """One character a question, as in `Observation.outcomes`, and the first one's number.

        Raises:
            OtherQuestionsError: most of the questions are not those that were asked before.
        """
        known = [question for question in answers if question in self._number]
        if not self._number or not self._is_fixed:
            self._learn(answers, offset)
        elif len(known) < _FEWEST_KNOWN * len(answers):
            raise OtherQuestionsError(
                f"{len(answers) - len(known)} of {len(answers)} questions have ids that no run "
                "before had; runs must answer the same questions to be compared one by one"
            )
        given = {self._number[q]: right for q, right in answers.items() if q in self._number}
        first = min(given)
        outcomes = "".join(
            "-" if number not in given else "1" if given[number] else "0"
            for number in range(first, max(given) + 1)
        )
        return outcomes, first

    def _learn(self, answers: Mapping[QuestionId, bool], offset: int) -> None:
        new = [question for question in answers if question not in self._number]
        if not new:
            return
        numbers = [question for question in new if isinstance(question, int)]
        ordered: Sequence[QuestionId] = sorted(numbers) if len(numbers) == len(new) else new
        for question in ordered:
            self._number[question] = len(self._number)
        self._file.write_bytes(msgspec.json.encode(list(self._number)))
