"""How many launches a search takes, over every planted set: the table of docs/config-bisect.md.

python -m tests.switches.launch_counts
"""

from __future__ import annotations

from itertools import combinations
from statistics import mean

from tests.switches.planted import PlantedOracle, find, planted


def counts(switches: int, size: int) -> list[int]:
    """Launches for each set of `size` among so many switches, confirmation included."""
    order = [f"s{number}" for number in range(switches)]
    found = []
    for culprits in combinations(order, size):
        oracle = PlantedOracle(planted(set(culprits)))
        finding, _ = find(order, oracle)
        assert finding.culprit == culprits
        found.append(len(oracle.launches))
    return found


if __name__ == "__main__":
    for switches in (4, 8, 10):
        row = [counts(switches, size) for size in (1, 2, 3)]
        cells = " | ".join(f"{mean(one):.1f}, {max(one)}" for one in row)
        print(f"| {switches} | {2**switches} | {cells} |")
