"""SGLang's own request pools and the row counts of their consumers, from any of its states.

Nothing is installed or imported: single classes are taken out of the sources and executed with
PyTorch and NumPy only, behind the interface of this project's own pools.
"""

from __future__ import annotations

from poolbisect.pools.upstream.adapter import UpstreamPool
from poolbisect.pools.upstream.consumers import ConsumerRows
from poolbisect.pools.upstream.faults import StubGap, SubjectFault
from poolbisect.pools.upstream.hybrid_adapter import UpstreamHybridPool
from poolbisect.pools.upstream.loader import (
    SlotRange,
    UpstreamCode,
    largest_slot,
    load_upstream,
    slot_range,
)

__all__ = [
    "ConsumerRows",
    "SlotRange",
    "StubGap",
    "SubjectFault",
    "UpstreamCode",
    "UpstreamHybridPool",
    "UpstreamPool",
    "largest_slot",
    "load_upstream",
    "slot_range",
]
