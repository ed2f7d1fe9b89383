"""From a subject's name to the code under test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from poolbisect.pools.interface import RequestPool, SubjectPools
from poolbisect.history.releases import fetch_release
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

    def consumer_rows(self, buffer: str, pool: RequestPool) -> int:
        return self.code.consumer_rows(buffer, cast(Any, pool)).rows


def resolve(subject: Subject) -> ResolvedSubject:
    """The code `subject` names; a release is fetched unless it is cached."""
    if subject.kind == "shipped":
        return ResolvedSubject(ShippedPools(subject.reference), {"pools": subject.reference})
    tree = fetch_release(subject.reference)
    return ResolvedSubject(
        UpstreamPools(load_upstream(tree)), {"release": subject.reference, "source": tree.name}
    )
