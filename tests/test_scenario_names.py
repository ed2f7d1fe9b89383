"""A scenario's name is a folder of reports, so not every text will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolbisect.errors import UsageError
from poolbisect.scenario import load_scenario, scenario_folder, scenario_names


@pytest.mark.parametrize("name", ["..", "", "a/b", ".hidden", "nightly", "bisect", "config-x"])
def test_names_that_would_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    text = (scenario_folder() / "mimo-canary.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text.replace('name = "mimo-canary"', f'name = "{name}"'))
    with pytest.raises(UsageError, match=r"mine\.toml: expected letters.* in name"):
        load_scenario(str(file))


def test_the_shipped_ones_are_fine() -> None:
    assert [load_scenario(name).name for name in scenario_names()] == scenario_names()
