from __future__ import annotations

from dataclasses import replace

import pytest

from poolbisect.evidence.comparability import BaselineKey, differing_fields

KEY = BaselineKey(
    model="mimo-miniature",
    task="arithmetic",
    n=1319,
    shots=5,
    sampling="greedy",
    hardware="cpu",
    engine_mode="eagle 3/1/4",
    harness_version="1",
)


def test_equal_keys_are_comparable():
    assert differing_fields(KEY, replace(KEY)) == ()


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("shots", 3, "shots: baseline 5, run 3"),
        ("n", 200, "n: baseline 1319, run 200"),
        ("hardware", "H200", "hardware: baseline cpu, run H200"),
        ("sampling", "temperature=0.6", "sampling: baseline greedy, run temperature=0.6"),
        ("harness_version", "2", "harness_version: baseline 1, run 2"),
        ("model", "other", "model: baseline mimo-miniature, run other"),
        ("task", "other", "task: baseline arithmetic, run other"),
        ("engine_mode", None, "engine_mode: baseline eagle 3/1/4, run not recorded"),
    ],
)
def test_each_differing_field_is_named(field, value, told):
    (difference,) = differing_fields(KEY, replace(KEY, **{field: value}))
    assert difference.field == field
    assert str(difference) == told


def test_all_differing_fields_are_named_in_order():
    differences = differing_fields(KEY, replace(KEY, harness_version="2", n=200))
    assert [difference.field for difference in differences] == ["n", "harness_version"]
