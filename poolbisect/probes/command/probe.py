"""The command probe: runs the user's command at a position of a history and judges the run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from poolbisect.bisection.outcome import Ending, Find, Observation, ProbeRequest
from poolbisect.bisection.plan import Plan
from poolbisect.culprit.interface import Attempt, Probed, Watch
from poolbisect.errors import InfrastructureError, UsageError
from poolbisect.history.ranges import CommitRange, HistoryRange
from poolbisect.history.release_ranges import ReleaseRange
from poolbisect.history.repository import Commit
from poolbisect.probes.command import decision as decisions
from poolbisect.probes.command.attempt import LOG, Ran, run_once
from poolbisect.probes.command.decision import Decision, Judge, Silent, plan_for
from poolbisect.probes.command.exit_codes import by_exit, in_words
from poolbisect.probes.command.infra_signs import last_line
from poolbisect.probes.command.invocation import Place, check_startable, used
from poolbisect.probes.command.judging import probed
from poolbisect.probes.command.options import CommandOptions, restored
from poolbisect.probes.command.question_order import QuestionOrder
from poolbisect.probes.command.score_reading import Reading
from poolbisect.probes.command.tree_folder import TreeFolder
from poolbisect.probes.command.worktrees import Worktrees

_DECISION, _QUESTIONS = "decision.json", "questions.json"
_FIRST_QUESTIONS = 250
"""Of a first run that may ask any number, before it is known what the search needs."""


class CommandProbe:
    """A `HistoryProbe` that runs a command; docs/command-probe.md says what it makes of it.

    `scratch` keeps what a resumed bisect must know, so it has to outlive this process; work trees
    lie in the cache, or in `trees`. `watch` hears what `plan` does, which may run the command.
    """

    name = "command"

    def __init__(
        self,
        history: CommitRange | ReleaseRange,
        command: Sequence[str],
        options: CommandOptions,
        scratch: Path,
        *,
        find: Find = Find.INTRODUCED,
        trees: Path | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Raises UsageError for an empty command or a placeholder the history has no value for."""
        if not command:
            raise UsageError("there is no command; give it after --, as in `-- python eval.py`.")
        _check_placeholders(history, (*command, options.score_file or ""))
        self._history = history
        self._command = tuple(command)
        self._options = options
        self._find = find
        self._scratch = scratch
        self._trees_root = trees
        self._watch: Watch = watch or (lambda words: None)
        self._started_in = Path.cwd()
        self._has_started = False
        self._folder: TreeFolder | None = None
        self._worktrees: Worktrees | None = None
        self._looks: dict[int, Ran] = {}
        self._decided: Decision | None = None
        self._order: QuestionOrder | None = None
        scratch.mkdir(parents=True, exist_ok=True)

    def plan(self) -> Plan:
        """How to search; runs the command first at an end or both where the options leave it open.

        Those runs are handed out as the first measurements of the ends, so they cost nothing.
        """
        if self._decided is None:  # what lies there is of another bisect
            for name in (_DECISION, _QUESTIONS):
                (self._scratch / name).unlink(missing_ok=True)
        return plan_for(self._decision(), self._command)

    def probe(self, request: ProbeRequest, attempt: Attempt, watch: Watch) -> Probed:
        """Run the command at a position. As `HistoryProbe.probe`."""
        self._watch = watch
        decision = self._decision()
        ran = self._looks.pop(request.position, None)
        if ran is not None and request.offset == 0:
            _move(ran.place.attempt, attempt.folder)
        else:
            try:
                ran = self._run(request, attempt, look_for_score=_looks_at_score(decision))
            except InfrastructureError as error:
                seen = Observation.failed(Ending.INFRA, note=str(error))
                return Probed(seen, {"detail": str(error)})
        assert self._order is not None
        commit = self._commit(request.position)
        submodules = self._trees().submodules(commit) if commit is not None else ()
        more = {"submodules_left_empty": list(submodules)} if submodules else {}
        return probed(ran, decision, self._order, **more)

    def probe_without(self, position: int, attempt: Attempt, watch: Watch) -> Probed | str:
        """Measure the newer end with the changes of one commit taken back, as `git revert` would.

        Or say in a few words why that cannot be done. {commit} is the newer end's.

        Raises:
            InfrastructureError: objects of the commit are missing, or the disk is full.
        """
        self._watch = watch
        if not isinstance(self._history, CommitRange):
            return "a release cannot be taken back on its own"
        newest = len(self._history) - 1
        commits = self._history.commits
        watch(f"taking {commits[position].short} back at {commits[newest].short}")
        tree = self._trees().without(commits[newest], commits[position])
        if isinstance(tree, str):
            return tree
        decision = self._decision()
        questions = plan_for(decision, self._command).first_questions
        request = ProbeRequest(newest, questions, reason="the newer end without the culprit")
        ran = self._run_in(tree, request, attempt, look_for_score=_looks_at_score(decision))
        assert self._order is not None
        return probed(ran, decision, self._order, without=commits[position].sha)

    def close(self) -> None:
        """Remove the work trees."""
        self._worktrees = None
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def _decision(self) -> Decision:
        """As decided before, also by an earlier start of this bisect, or else now."""
        if self._decided is None:
            file = self._scratch / _DECISION
            decided = decisions.saved(file)
            if decided is None:
                decided = decisions.decide(self._options, self._command, self._find, self._look)
                decisions.save(decided, file)
            self._decided = decided
            is_fixed = "questions" not in used(self._command)
            self._order = QuestionOrder(self._scratch / _QUESTIONS, is_fixed=is_fixed)
            for ran in self._looks.values():  # the older end's questions come first
                if ran.reading is not None and ran.reading.answers:
                    self._order.outcomes(ran.reading.answers, 0)
        return self._decided

    def _look(self, end: int) -> Reading | Silent:
        position = end % len(self._history)
        folder = self._scratch / f"look-{uuid4().hex[:8]}"
        folder.mkdir()
        attempt = Attempt(0, uuid4().hex, folder)
        questions = self._options.asked or _FIRST_QUESTIONS
        reason = "what does the command say of itself?"
        self._watch(f"{self._history.entries[position].short}: {reason}")
        try:
            ran = self._run(
                ProbeRequest(position, questions, reason=reason), attempt, look_for_score=True
            )
        except InfrastructureError as error:
            return Silent(str(error), is_usual=False, is_infra=True)
        self._looks[position] = ran
        if ran.reading is not None:
            return ran.reading
        words = ran.lost or ran.infra or ran.no_score or in_words(ran.finished)
        if ran.lost or ran.infra:
            return Silent(words, is_usual=False, is_infra=True)
        if by_exit(ran.finished).ending is not Ending.MEASURED:
            return Silent(f"{in_words(ran.finished)}: {last_line(folder / LOG)}", is_usual=False)
        return Silent(words, is_unreadable=ran.unreadable)

    def _run(self, request: ProbeRequest, attempt: Attempt, *, look_for_score: bool) -> Ran:
        commit = self._commit(request.position)
        tree = self._started_in
        if commit is not None:
            self._watch(f"checking out {commit.short}")
            tree = self._trees().at(commit)
        return self._run_in(tree, request, attempt, look_for_score=look_for_score)

    def _run_in(
        self, tree: Path, request: ProbeRequest, attempt: Attempt, *, look_for_score: bool
    ) -> Ran:
        places = used(self._command)
        questions, offset = request.questions, request.offset
        if "questions" not in places:
            questions, offset = self._options.asked or request.questions, 0
        elif "offset" not in places:
            questions, offset = request.offset + request.questions, 0
        if not self._has_started:
            check_startable(self._command, tree, self._started_in)
        name = self._history.entries[request.position].name
        is_commit = self._history.kind == CommitRange.kind
        place = Place(
            commit=name if is_commit else None,
            release=None if is_commit else name,
            tree=tree,
            attempt=attempt.folder.absolute(),
            run_id=attempt.run_id,
            questions=questions,
            offset=offset,
        )
        self._watch("running the command")
        ran = run_once(self._command, self._options, place, look_for_score=look_for_score)
        self._has_started = self._has_started or not ran.finished.failure
        return ran

    def _commit(self, position: int) -> Commit | None:
        if isinstance(self._history, CommitRange):
            return self._history.commits[position]
        return None

    def _trees(self) -> Worktrees:
        assert isinstance(self._history, CommitRange)
        if self._worktrees is None:
            self._folder = self._folder or TreeFolder(self._scratch, self._trees_root)
            self._worktrees = Worktrees(
                self._history.repository, self._folder.path, keep_build=self._options.keep_build
            )
        return self._worktrees


def open_command_probe(
    kept: Mapping[str, Any],
    history: HistoryRange,
    scratch: Path,
    *,
    find: Find = Find.INTRODUCED,
    watch: Watch | None = None,
) -> CommandProbe:
    """The probe of a session that keeps `options.stored(...)`. As `CommandProbe` for the rest."""
    if not isinstance(history, CommitRange | ReleaseRange):
        raise UsageError(f"the command probe cannot run at a {history.kind}.")
    command, options = restored(kept)
    return CommandProbe(history, command, options, scratch, find=find, watch=watch)


def _looks_at_score(decision: Decision) -> bool:
    return decision.judge not in (Judge.EXIT, Judge.CRASH)


def _check_placeholders(history: CommitRange | ReleaseRange, texts: Sequence[str]) -> None:
    other = "release" if isinstance(history, CommitRange) else "commit"
    if other in used(texts):
        raise UsageError(
            f"{{{other}}} has no value where {history.kind}s are searched; use {{{history.kind}}}."
        )


def _move(source: Path, target: Path) -> None:
    for entry in source.iterdir():
        shutil.move(entry, target / entry.name)
    source.rmdir()
