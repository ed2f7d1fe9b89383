"""From a subject's name to the code under test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from poolbisect.history.commits import CommitTree
from poolbisect.history.releases import fetch_release
from poolbisect.history.repository import open_repository
from poolbisect.pools.interface import HybridRequestPool, RequestPool, SubjectPools
from poolbisect.pools.shipped import ShippedPools
from poolbisect.pools.upstream import UpstreamCode, load_upstream
from poolbisect.subject import Subject


@dataclass(frozen=True, slots=True)
class ResolvedSubject:
    """A subject's pools, and what exactly they are."""

    pools: SubjectPools
    provenance: dict[str, Any]


class UpstreamPools:
    """Upstream's own pool classes and row counts in the engine's terms."""

    def __init__(self, code: UpstreamCode) -> None:
        self.code = code

    def make_pool(
        self, size: int, max_context_len: int, device: str, pre_alloc_size: int | None = None
    ) -> RequestPool:
        return cast(RequestPool, self.code.make_pool(size, max_context_len, device, pre_alloc_size))

    def make_hybrid_pool(
        self,
        size: int,
        max_context_len: int,
        device: str,
        *,
        mamba_size: int,
        pre_alloc_size: int | None = None,
        extra_buffer: bool = False,
        overlap: bool = True,
    ) -> HybridRequestPool:
        pool = self.code.make_hybrid_pool(
            size,
            max_context_len,
            device,
            mamba_size=mamba_size,
            pre_alloc_size=pre_alloc_size,
            extra_buffer=extra_buffer,
            overlap=overlap,
        )
        return cast(HybridRequestPool, pool)

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        return self.code.consumer_rows(buffer, cast(Any, pool)).rows


def resolve(subject: Subject, repo: Path | None = None, family: str = "padding") -> ResolvedSubject:
    """The code `subject` names; a release is fetched unless it is cached.

    Shipped states are those of a `family` of pools: UsageError if it has none of that name.

    A commit is read from the repository at or around `repo`, by default the current folder, for
    as long as the code is in use.
    """
    if subject.kind == "shipped":
        pools = ShippedPools(subject.reference, family)
        return ResolvedSubject(pools, {"pools": subject.reference, "family": family})
    if subject.kind == "commit":
        commit = CommitTree(open_repository(repo or Path()), subject.reference)
        return ResolvedSubject(
            UpstreamPools(load_upstream(commit)),
            {"commit": commit.commit.sha, "source": commit.name},
        )
    tree = fetch_release(subject.reference)
    return ResolvedSubject(
        UpstreamPools(load_upstream(tree)), {"release": subject.reference, "source": tree.name}
    )
