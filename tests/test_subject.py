"""Subjects as the user names them."""

from __future__ import annotations

import pytest

from poolbisect.errors import UsageError
from poolbisect.pools.shipped import FAMILIES
from poolbisect.subject import SHIPPED, Subject, parse_subject


def test_every_shipped_state_is_a_subject() -> None:
    assert set(SHIPPED) == {state for family in FAMILIES.values() for state in family}
    for name in SHIPPED:
        assert parse_subject(name) == Subject("shipped", name)


def test_a_release_is_named_with_its_version() -> None:
    assert parse_subject("release:0.5.10.post1") == Subject("release", "0.5.10.post1")


@pytest.mark.parametrize("text", [*SHIPPED, "release:0.5.12", "release:0.5.10.post1"])
def test_a_subject_is_called_what_the_user_called_it(text: str) -> None:
    assert parse_subject(text).name == text


@pytest.mark.parametrize(
    "text",
    ["", "fixed", "Original", "release", "release:", ":0.5.12", "shipped:original", "0.5.12"],
)
def test_anything_else_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_subject(text)
    message = str(raised.value)
    assert repr(text) in message
    assert len(message.splitlines()) == 1
    for name in (*SHIPPED, "release:"):
        assert name in message
