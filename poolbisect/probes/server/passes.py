"""One pass over questions on a server that is up: answers, accept length, and how it ended."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from poolbisect.evidence.outcomes import Tally
from poolbisect.measurement import Answer, Outcome
from poolbisect.probes.server import client
from poolbisect.probes.server.asking import Answered, Asking, Sampling, Stopped
from poolbisect.probes.server.endings import Finding, ServerEnd
from poolbisect.probes.server.log_signs import last_words, mentions_nan
from poolbisect.probes.server.questions import Question, QuestionSet
from poolbisect.probes.server.serving import Serving

_WATCH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class HowToAsk:
    """What the client does; `concurrency` None is all at once, `question_timeout` in seconds."""

    concurrency: int | None
    question_timeout: float
    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass saw. `notes` are remarks that do not change how it ended; `doubts` are those
    of them for which its score is not to be trusted."""

    finding: Finding
    answers: tuple[Answer, ...]
    accept_length: float | None
    seconds: float
    tokens: int
    flushed: bool
    notes: tuple[str, ...] = ()

    @property
    def doubts(self) -> tuple[str, ...]:
        return tuple(note for note in self.notes if note.startswith(_NAN_NOTE))

    @property
    def tally(self) -> Tally:
        return tally_of(self.answers)

    @property
    def outcomes(self) -> str:
        """One character a question, in order: "1" right, "0" wrong, "-" not answered."""
        return "".join(_CHARACTER.get(answer.outcome, "0") for answer in self.answers)


_NAN_NOTE = "the server's log reports NaN"
_CHARACTER = {Outcome.RIGHT: "1", Outcome.UNANSWERED: "-"}


def ask_all(
    serving: Serving, questions: QuestionSet, how: HowToAsk, watch: Callable[[str], None]
) -> Pass:
    """Flush the server's prefix cache and ask everything.

    An interrupt is an ending here, `interrupted`, with what was answered until then.
    """
    flushed = client.flush_cache(serving.address)
    serving.note_processes()
    since = serving.log.size
    sampling = Sampling(
        model=serving.model,
        max_new_tokens=questions.max_new_tokens,
        stops=questions.stops,
        temperature=how.temperature,
        seed=how.seed,
    )
    asking = Asking(
        serving.address,
        questions.questions,
        sampling,
        concurrency=how.concurrency or len(questions),
        question_timeout=how.question_timeout,
    )
    clock, shown = time.monotonic(), 0.0

    def progress(done: int) -> None:
        nonlocal shown
        if time.monotonic() - shown > _WATCH_SECONDS or done == len(questions):
            shown = time.monotonic()
            watch(f"{done} of {len(questions)} answered")

    try:
        stopped: Stopped | None = asking.run(serving.alive, progress)
    except KeyboardInterrupt:
        stopped = None
    seconds = time.monotonic() - clock
    answers = tuple(
        _answer(question, asking.answered.get(question.id), questions)
        for question in questions.questions
    )
    finding = _finding(serving, stopped, asking, answers, since, how)
    alive = finding.end in (ServerEnd.MEASURED, ServerEnd.TRANSPORT)
    facts = client.server_facts(serving.address) if alive else {}
    return Pass(
        finding=finding,
        answers=answers,
        accept_length=client.accept_length(facts),
        seconds=seconds,
        tokens=sum(one.tokens for one in asking.answered.values()),
        flushed=flushed,
        notes=_notes(serving, answers, since),
    )


def tally_of(answers: tuple[Answer, ...]) -> Tally:
    counts = Counter(answer.outcome for answer in answers)
    return Tally(
        right=counts[Outcome.RIGHT],
        wrong=counts[Outcome.WRONG],
        invalid=counts[Outcome.INVALID],
        lost=counts[Outcome.UNANSWERED],
    )


def _finding(
    serving: Serving,
    stopped: Stopped | None,
    asking: Asking,
    answers: tuple[Answer, ...],
    since: int,
    how: HowToAsk,
) -> Finding:
    tally = tally_of(answers)
    if stopped is None:
        sentence = f"interrupted after {tally.answered} of {tally.asked} questions"
        return Finding(ServerEnd.INTERRUPTED, sentence)
    if not tally.lost:
        return Finding(ServerEnd.MEASURED)
    why = serving.why_it_ended(since)
    if why is not None:
        done = f", {tally.answered} of {tally.asked} questions answered"
        return Finding(why.end, why.sentence + done, why.line)
    if stopped is Stopped.HUNG:
        sentence = (
            f"the server hangs: {tally.answered} of {tally.asked} questions answered, and no "
            f"other for {how.question_timeout:g} seconds"
        )
        return Finding(ServerEnd.HANG, sentence, last_words(serving.log.text(since)))
    if tally.is_infra():
        return Finding(ServerEnd.TRANSPORT, _lost_words(asking, tally))
    return Finding(ServerEnd.MEASURED)


def _lost_words(asking: Asking, tally: Tally) -> str:
    """`40 of 200 questions were not answered: HTTP 500 (40 times)`."""
    problems = Counter(one.problem for one in asking.answered.values() if one.text is None)
    commonest, times = problems.most_common(1)[0] if problems else ("not asked", tally.lost)
    return f"{tally.lost} of {tally.asked} questions were not answered: {commonest} ({times} times)"


def _notes(serving: Serving, answers: tuple[Answer, ...], since: int) -> tuple[str, ...]:
    notes = []
    tally = tally_of(answers)
    if tally.lost > 0 and not tally.is_infra():
        notes.append(f"{tally.lost} of {tally.asked} questions were lost and do not count")
    nan = mentions_nan(serving.log.text(since))
    if nan is not None:
        notes.append(f"{_NAN_NOTE}: {nan}")
    return tuple(notes)


def _answer(question: Question, found: Answered | None, questions: QuestionSet) -> Answer:
    text = found.text if found is not None else None
    outcome = Outcome.UNANSWERED
    if text is not None:
        outcome = questions.grade(text, question.expected)
    return Answer(
        id=question.id,
        prompt=question.prompt,
        expected=question.expected,
        text=text or "",
        outcome=outcome,
        rank=0,
        slot=None,
        finish=found.finish if found is not None else None,
        accept_length=None,
    )


def write_answers(answers: tuple[Answer, ...], path: Path) -> None:
    """Per-question JSONL, as `poolbisect compare` reads it."""
    lines = [
        {
            "id": answer.id,
            "correct": None
            if answer.outcome is Outcome.UNANSWERED
            else answer.outcome is Outcome.RIGHT,
            "outcome": answer.outcome.value,
            "text": answer.text,
            "expected": answer.expected,
            "finish": answer.finish,
        }
        for answer in answers
    ]
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
