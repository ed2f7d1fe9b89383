"""The switches of a scenario: what its server turns on beyond the plainest one."""

from __future__ import annotations

from collections.abc import Iterator

from poolbisect.engine.config import PaddedRows
from poolbisect.scenario import Scenario
from poolbisect.switches.switch import NONE, Setting, Switch


def default_switches(scenario: Scenario) -> list[Switch]:
    """A switch for each feature the scenario uses, on as the scenario has it, off as plain as can.

    Those that make a launch slow when off come first: the search then has them on in most launches.
    """
    return list(_switches(scenario))


def _switches(scenario: Scenario) -> Iterator[Switch]:
    engine, memory, workload = scenario.engine, scenario.memory, scenario.workload
    in_flight = workload.concurrency or engine.max_running_requests
    if in_flight > engine.dp_size:
        # Fewer than one for each rank are refused, so that is the least all configurations take.
        yield _one("concurrency", engine.dp_size, in_flight)
    if engine.speculative_algorithm is not None:
        yield Switch(
            "speculation",
            (
                Setting("speculative-algorithm", NONE, engine.speculative_algorithm),
                Setting("speculative-num-steps", "0", str(engine.speculative_num_steps)),
                Setting(
                    "speculative-num-draft-tokens", "1", str(engine.speculative_num_draft_tokens)
                ),
                Setting(
                    "enable-multi-layer-eagle", "false", _flag(engine.enable_multi_layer_eagle)
                ),
            ),
        )
    if engine.max_mamba_cache_size is not None:
        # Three mamba slots a request slot is the most that a request can hold.
        ample = 3 * (engine.max_running_requests + engine.dp_size * memory.pre_alloc_size)
        if engine.max_mamba_cache_size < ample:
            yield _one("max-mamba-cache-size", ample, engine.max_mamba_cache_size)
    if engine.mamba_scheduler_strategy == "extra_buffer":
        yield _one("mamba-scheduler-strategy", "no_buffer", "extra_buffer")
    if engine.disaggregation_mode == "decode":
        yield Switch(
            "pd-decode",
            (
                Setting("disaggregation-mode", "null", "decode"),
                Setting("pre-alloc-size", "0", str(memory.pre_alloc_size)),
            ),
        )
    if engine.dp_size > 1:
        yield Switch(
            "dp-attention",
            (
                Setting("dp-size", "1", str(engine.dp_size)),
                Setting("enable-dp-attention", "false", "true"),
            ),
        )
    if not engine.disable_overlap_schedule:
        yield Switch("overlap-schedule", (Setting("disable-overlap-schedule", "true", "false"),))
    if engine.cuda_graph_max_bs > 1:
        yield Switch(
            "cuda-graphs", (Setting("cuda-graph-max-bs", "1", str(engine.cuda_graph_max_bs)),)
        )
    if memory.padded_rows == PaddedRows.STALE:
        yield _one("padded-rows", PaddedRows.ZEROED.value, PaddedRows.STALE.value)
    if memory.padded_writes:
        yield _one("padded-writes", "false", "true")
    if engine.page_size > 1:
        yield _one("page-size", 1, engine.page_size)
    if workload.temperature > 0:
        yield _one("temperature", 0, workload.temperature)


def _one(key: str, off: object, on: object) -> Switch:
    return Switch(key, (Setting(key, str(off), str(on)),))


def _flag(value: bool) -> str:
    return "true" if value else "false"
