"""The switches of a real server: the features its flags turn on, and those that are on unasked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poolbisect.probes.server.flags import flags_of
from poolbisect.scenario import Scenario
from poolbisect.switches.flags import value_in
from poolbisect.switches.switch import NONE, Setting, Switch

PLAIN_BACKEND = "torch_native"
_ON_UNLESS_DISABLED = {
    "overlap-schedule": "disable-overlap-schedule",
    "cuda-graphs": "disable-cuda-graph",
    "radix-cache": "disable-radix-cache",
}
_SPECULATION = (
    "speculative-algorithm",
    "speculative-num-steps",
    "speculative-eagle-topk",
    "speculative-num-draft-tokens",
    "speculative-draft-model-path",
    "enable-multi-layer-eagle",
)
_ATTENTION_RANKS = ("dp", "dp-size", "data-parallel-size", "enable-dp-attention")


def server_switches(scenario: Scenario) -> list[Switch]:
    """A switch for each feature of the scenario's server, in the order to try them."""
    return list(_switches(flags_of(scenario), scenario.engine.max_running_requests))


def _switches(flags: Sequence[str], most: int) -> Iterator[Switch]:
    if most > 1:
        yield Switch("concurrency", (Setting("concurrency", "1", str(most)),))
    speculation = _present(flags, _SPECULATION)
    if speculation:
        yield Switch("speculation", speculation)
    if "--enable-dp-attention" in flags:
        yield Switch("dp-attention", _present(flags, _ATTENTION_RANKS))
    for name, key in _ON_UNLESS_DISABLED.items():
        if f"--{key}" not in flags:
            yield Switch(name, (Setting(key, "true", "false"),))
    backend = value_in(flags, "--attention-backend")
    if backend is not None and backend != PLAIN_BACKEND:
        yield Switch("attention-backend", (Setting("attention-backend", PLAIN_BACKEND, backend),))
    page = value_in(flags, "--page-size")
    if page is not None and page != "1":
        yield Switch("page-size", (Setting("page-size", "1", page),))


def _present(flags: Sequence[str], keys: Sequence[str]) -> tuple[Setting, ...]:
    """Off without the flags among `keys` that are given, on with them."""
    found = ((key, value_in(flags, f"--{key}")) for key in keys)
    return tuple(Setting(key, NONE, value) for key, value in found if value is not None)
