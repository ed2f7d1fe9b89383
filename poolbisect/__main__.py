"""`python -m poolbisect`."""

from __future__ import annotations

from poolbisect.cli import main

main()
