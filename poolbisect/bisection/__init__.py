"""Finding the commit: what is known, where to look next, and a journal of it.

`Search` knows commits only as positions 0 (oldest) to n - 1 with opaque names. docs/bisection.md
explains the model and every result.
"""

from __future__ import annotations
