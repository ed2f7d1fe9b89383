"""From a subject's name to the code under test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolbisect.history.commits import CommitTree
from poolbisect.history.releases import fetch_release
from poolbisect.history.repository import Repository, open_repository
from poolbisect.history.source_tree import SourceTree
from poolbisect.pools.interface import SubjectPools
from poolbisect.pools.shipped import ShippedPools
from poolbisect.probes.upstream_pools import UpstreamPools
from poolbisect.subject import Subject

__all__ = ["ResolvedSubject", "UpstreamPools", "resolve"]


@dataclass(frozen=True, slots=True)
class ResolvedSubject:
    """The code under test: pools of ours, or sources of upstream's that are only run apart
    (`poolbisect.probes.served_apart`); and what exactly it is."""

    code: SubjectPools | SourceTree
    provenance: dict[str, Any]


def resolve(
    subject: Subject, repo: Path | Repository | None = None, family: str = "padding"
) -> ResolvedSubject:
    """The code `subject` names; a release is fetched unless it is cached. None of it is run.

    A commit is read, for as long as the code is in use, from `repo` or the repository at or around
    that path, by default the current folder. Shipped states are those of a `family` of pools.

    Raises:
        UsageError: there is no such state, repository, commit or release.
        InfrastructureError: a release cannot be fetched.
    """
    if subject.kind == "shipped":
        pools = ShippedPools(subject.reference, family)
        return ResolvedSubject(pools, {"pools": subject.reference, "family": family})
    if subject.kind == "commit":
        repository = repo if isinstance(repo, Repository) else open_repository(repo or Path())
        commit = CommitTree(repository, subject.reference)
        return ResolvedSubject(commit, {"commit": commit.commit.sha, "source": commit.name})
    tree = fetch_release(subject.reference)
    return ResolvedSubject(tree, {"release": subject.reference, "source": tree.name})
