"""What kind of files a commit touches, where that says something about its guilt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from poolbisect.errors import InfrastructureError
from poolbisect.history.repository import Commit, Repository

_DOCUMENT_ENDINGS = frozenset({".md", ".rst", ".mdx", ".ipynb", ".png", ".svg", ".jpg", ".gif"})
_DOCUMENT_FOLDERS = frozenset({"docs", "doc", "docs_new"})
_MEASURING = re.compile(r"(^|[-_.])(tests?|benchmarks?|benches|evals?|evaluations?)($|[-_.])")
_PINNED = re.compile(
    r"(pyproject.*\.toml|requirements.*\.(txt|in)|constraints.*\.txt|setup\.(py|cfg)"
    r"|.*\.lock|.*Dockerfile.*|environment.*\.ya?ml)"
)
# A requirement with a version, wherever a file may write one: name, optional extras, version.
_REQUIREMENT = re.compile(
    r"^[\s\"'-]*(?:ARG |ENV )?([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*"
    r"(?:[=<>~!]=|[=@])\s*[\"']?v?([\w.+-]+)"
)


def remark(repository: Repository, commit: Commit) -> str:
    """A remark beside a culprit's name, empty where its files call for none.

    A commit may touch documentation only, only what measures (tests, evaluations, benchmarks), or
    one pinned version, which is then the suspect and not the code.
    """
    files = repository.files_touched(commit)
    if not files:
        return "it changes no file"
    if all(map(_is_document, files)):
        return "it touches documentation only"
    if all(map(_measures, files)):
        return "it touches only tests and evaluations, so the measurement may be what changed"
    if all(_PINNED.fullmatch(PurePosixPath(path).name) for path in files):
        try:
            return _pins(repository, commit, files)
        except InfrastructureError:  # a culprit stays one without its remark
            return ""
    return ""


def _is_document(path: str) -> bool:
    parts = PurePosixPath(path)
    return parts.suffix in _DOCUMENT_ENDINGS or bool(_DOCUMENT_FOLDERS & set(parts.parts[:-1]))


def _measures(path: str) -> bool:
    return any(_MEASURING.search(part.lower()) for part in PurePosixPath(path).parts)


def _pins(repository: Repository, commit: Commit, files: tuple[str, ...]) -> str:
    """The requirements whose versions differ, when nothing else does."""
    changed: dict[str, set[str]] = {}
    for path in files:
        before = _lines(repository, commit.parents[:1], path)
        after = _lines(repository, (commit.sha,), path)
        old, new = _versions(before - after), _versions(after - before)
        if old is None or new is None:
            return ""
        for name in old | new:
            versions = f"{old.get(name, 'none')} → {new.get(name, 'none')}"
            changed.setdefault(name, set()).add(versions)
    listed = [f"{name} {', '.join(sorted(versions))}" for name, versions in changed.items()]
    return f"it changes only pinned versions: {'; '.join(sorted(listed))}" if listed else ""


def _lines(repository: Repository, commits: Sequence[str], path: str) -> Counter[str]:
    """Lines of a file at a commit, of which there may be none."""
    blobs = [repository.git.file(commit, path) for commit in commits]
    text = "".join(blob.content.decode(errors="replace") for blob in blobs if blob is not None)
    return Counter(line.strip() for line in text.splitlines() if line.strip())


def _versions(lines: Counter[str]) -> dict[str, str] | None:
    """Requirement to version, None when a line is something else."""
    found = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is None:
            return None
        found[match[1]] = match[2]
    return found
