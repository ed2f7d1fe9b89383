"""The server's flags: a scenario's own, and what they say about devices."""

from __future__ import annotations

from collections.abc import Sequence

from poolbisect.scenario import Scenario

_PARALLELISM = {
    "tensor": ("--tp", "--tp-size", "--tensor-parallel-size"),
    "pipeline": ("--pp", "--pp-size", "--pipeline-parallel-size"),
    "data": ("--dp", "--dp-size", "--data-parallel-size"),
}
_SECRETS = ("key", "token", "password")
# What the exported base weights can be served with; the rest needs MTP layers or more ranks.
_OF_THE_BASE_MODEL = ("max_running_requests", "context_length", "disable_overlap_schedule")


def flags_of(scenario: Scenario) -> tuple[str, ...]:
    """The flags a scenario wants: those it states for a server, else what applies of the
    miniature's. The exported miniature is its base model, which has neither MTP layers nor more
    than one rank, so speculation and DP attention are left out."""
    if scenario.server is not None:
        return tuple(scenario.server.flags)
    flags: list[str] = []
    for name in _OF_THE_BASE_MODEL:
        value = getattr(scenario.engine, name)
        if value is True:
            flags.append("--" + name.replace("_", "-"))
        elif value is not False and value is not None:
            flags += ("--" + name.replace("_", "-"), str(value))
    return tuple(flags)


def shown(argv: Sequence[str]) -> list[str]:
    """A command as reports and records keep it: without keys and tokens."""
    found, hidden = [], False
    for word in argv:
        name, equals, _ = word.partition("=")
        secret = name.startswith("--") and name.endswith(_SECRETS)
        found.append("***" if hidden else f"{name}=***" if secret and equals else word)
        hidden = secret and not equals
    return found


def gpus_of(flags: Sequence[str]) -> int:
    """GPUs that a server with these flags takes: tensor times pipeline parallelism, times data
    parallelism unless that is DP attention, whose ranks share them."""
    sizes = dict.fromkeys(_PARALLELISM, 1)
    for kind, names in _PARALLELISM.items():
        for name in names:
            value = value_of(flags, name)
            if value is not None and value.isdigit():
                sizes[kind] = max(1, int(value))
    if "--enable-dp-attention" in flags:
        sizes["data"] = 1
    return sizes["tensor"] * sizes["pipeline"] * sizes["data"]


def value_of(flags: Sequence[str], name: str) -> str | None:
    """The value of a flag, the last one given; None without it."""
    found = None
    for number, flag in enumerate(flags):
        if flag == name and number + 1 < len(flags):
            found = flags[number + 1]
        elif flag.startswith(name + "="):
            found = flag.partition("=")[2]
    return found
