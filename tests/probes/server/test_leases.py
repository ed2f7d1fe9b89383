"""Devices are leased by locks of the system: never twice, free once the holder is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from poolbisect.probes.server.devices import Device, parse_devices, visible
from poolbisect.probes.server.flags import gpus_of, shown, value_of
from poolbisect.probes.server.leases import NoLeaseError, lease
from poolbisect.probes.server.measure import measure_server
from poolbisect.scenario import load_scenario, server_scenario_names

SMI = """\
0, GPU-aaa1, NVIDIA H200, 12, 143771
1, GPU-bbb2, NVIDIA H200, 90000, 143771
2, GPU-ccc3, NVIDIA H200, 0, 143771
"""


def quiet(words: str) -> None:
    pass


def test_what_nvidia_smi_says() -> None:
    devices = parse_devices(SMI + "garbage\n3, x, y, [N/A], 1\n")
    assert [device.index for device in devices] == [0, 1, 2]
    assert [device.busy for device in devices] == [False, True, False]


@pytest.mark.parametrize(
    ("setting", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("2,0", [2, 0]),
        ("GPU-bbb2", [1]),
        ("GPU-c, 0", [2, 0]),
        ("1,9,0", [1]),
        ("-1", []),
    ],
)
def test_only_visible_devices_are_used(setting: str | None, indices: list[int]) -> None:
    assert [device.index for device in visible(parse_devices(SMI), setting)] == indices


def test_two_probes_never_share_a_gpu(tmp_path: Path) -> None:
    found = [Device(n, f"GPU-{n}", "H200", 0, 140000) for n in range(3)]
    with lease(tmp_path, 2, 0, quiet, find=lambda: found) as first:
        assert first.names == ("gpu-0", "gpu-1")
        assert first.environment()["CUDA_VISIBLE_DEVICES"] == "0,1"
        with lease(tmp_path, 1, 0, quiet, find=lambda: found) as second:
            assert second.names == ("gpu-2",)
            with (
                pytest.raises(NoLeaseError, match=r"GPU 0 \(leased by process \d+ since"),
                lease(tmp_path, 1, 0, quiet, find=lambda: found[:1]),
            ):
                pass
    with lease(tmp_path, 3, 0, quiet, find=lambda: found) as again:
        assert len(again.devices) == 3


def test_all_or_none_is_taken(tmp_path: Path) -> None:
    found = [Device(n, f"GPU-{n}", "H200", 0, 140000) for n in range(2)]
    with lease(tmp_path, 1, 0, quiet, find=lambda: found[1:]):
        with (
            pytest.raises(NoLeaseError),
            lease(tmp_path, 2, 0, quiet, find=lambda: found),
        ):
            pass
        with lease(tmp_path, 1, 0, quiet, find=lambda: found) as free:
            assert free.names == ("gpu-0",)


def test_a_gpu_that_somebody_works_on_is_not_taken(tmp_path: Path) -> None:
    with (
        pytest.raises(NoLeaseError, match="90000 MiB that no lease accounts for"),
        lease(tmp_path, 3, 0, quiet, find=lambda: parse_devices(SMI)),
    ):
        pass
    with lease(tmp_path, 2, 0, quiet, find=lambda: parse_devices(SMI)) as free:
        assert free.names == ("gpu-0", "gpu-2")


def test_a_host_with_too_few_says_so_at_once(tmp_path: Path) -> None:
    with (
        pytest.raises(NoLeaseError, match="needs 8 GPUs and 3 can be used"),
        lease(tmp_path, 8, 1000, quiet, find=lambda: parse_devices(SMI)),
    ):
        pass


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from poolbisect.probes.server.leases import lease\n"
        "with lease(Path(sys.argv[1]), 1, 0, print, find=lambda: []):\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    with holder.stdout:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(NoLeaseError), lease(tmp_path, 1, 0, quiet, find=list):
            pass
        holder.kill()
        holder.wait()
    with lease(tmp_path, 1, 0, quiet, find=list) as free:
        assert free.names == ("cpu-0",)


def test_a_probe_that_finds_the_host_taken_is_infra(
    tmp_path: Path, options: Callable[..., object]
) -> None:
    chosen = options(lease_timeout=0.0)
    with lease(tmp_path / "leases", 1, 0, quiet):
        found = measure_server(
            load_scenario("mimo-canary"),
            "installed",
            chosen,  # type: ignore[arg-type]
            folder=tmp_path / "run",
            questions=1,
        )
    assert found.ended == "infra"
    assert "did not come free within 0 seconds" in found.detail


@pytest.mark.parametrize(
    ("flags", "gpus"),
    [
        ((), 1),
        (("--tp", "4", "--dp", "2", "--enable-dp-attention"), 4),
        (("--tp-size=2", "--dp-size", "2"), 4),
        (("--tp", "2", "--pp-size", "2"), 4),
        (("--tensor-parallel-size", "8"), 8),
    ],
)
def test_how_many_gpus_flags_take(flags: tuple[str, ...], gpus: int) -> None:
    assert gpus_of(flags) == gpus


def test_the_real_scenarios_take_upstreams_gpus() -> None:
    flags = {name: load_scenario(name).server for name in server_scenario_names()}
    taken = {name: gpus_of(server.flags) for name, server in flags.items() if server}
    assert taken == {"mimo-v2-flash": 4, "mimo-v2.5": 8, "nemotron-nano-v2": 1}


def test_keys_stay_out_of_reports() -> None:
    argv = ["x", "--api-key", "secret", "--admin-api-key=secret", "--hf-token", "secret"]
    argv += ["--tp", "2"]
    assert "secret" not in " ".join(shown(argv))
    assert shown(argv)[-2:] == ["--tp", "2"]
    assert value_of(argv, "--tp") == "2"
