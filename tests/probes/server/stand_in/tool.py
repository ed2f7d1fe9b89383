"""The tool as a process of its own, to be interrupted and killed: measures the stand-in once.

    python tool.py FOLDER FAULT

says `up` when the server answers, and how the measurement ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[3]))

from poolbisect.probes.server.measure import measure_server  # noqa: E402
from poolbisect.probes.server.options import ServerOptions  # noqa: E402
from poolbisect.scenario import load_scenario  # noqa: E402


def main() -> None:
    folder, fault = Path(sys.argv[1]), sys.argv[2]
    options = ServerOptions(
        model="stand-in",
        command=("{python}", str(HERE / "server.py"), "--port", "{port}", "--fault", fault),
        leases=folder / "leases",
        trees=folder / "trees",
        environments=folder / "environments",
        grace=1.0,
    )

    def watch(words: str) -> None:
        if words.endswith("answered"):
            print("up", flush=True)

    found = measure_server(
        load_scenario("mimo-canary"),
        "installed",
        options,
        folder=folder / "run",
        questions=30,
        watch=watch,
    )
    print(found.ended.value, found.detail, flush=True)


if __name__ == "__main__":
    main()
