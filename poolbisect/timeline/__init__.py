"""The contract probe over a whole range of history: every transition, in seconds.

docs/timeline.md explains what is reported and how it is found.
"""

from __future__ import annotations

from poolbisect.timeline.attribution import Attribution, attribution_at
from poolbisect.timeline.plans import every_plan, plans_for
from poolbisect.timeline.priors import prior_from_timeline
from poolbisect.timeline.transitions import Kind, Transition
from poolbisect.timeline.workflow import Timeline, timeline

__all__ = [
    "Attribution",
    "Kind",
    "Timeline",
    "Transition",
    "attribution_at",
    "every_plan",
    "plans_for",
    "prior_from_timeline",
    "timeline",
]
