"""Errors a user can meet. Each message is one sentence: what is wrong, where, what to do."""

from __future__ import annotations


class PoolbisectError(Exception):
    """Base of all expected errors; `exit_code` is what the command line ends with."""

    exit_code = 3


class UsageError(PoolbisectError):
    """The command, a file or a reference the user gave is wrong."""

    exit_code = 2


class InfrastructureError(PoolbisectError):
    """The host, the network or a tool failed; nothing was learnt about the subject."""

    exit_code = 3


class NotApplicableError(PoolbisectError):
    """The question cannot be asked of this subject, or the evidence cannot answer it."""

    exit_code = 4
