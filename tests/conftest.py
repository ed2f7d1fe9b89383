"""What the tests share: devices, and measurements made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from poolbisect.measurement import Answer, Ended, Measurement, MemoryEvents, Outcome, SlotUse

settings.register_profile("poolbisect", deadline=None)
settings.load_profile("poolbisect")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not on_gpu:
        return
    import torch

    if not torch.cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture(
    scope="session", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], ids=str
)
def device(request: pytest.FixtureRequest) -> str:
    """Every device the memory model runs on."""
    return str(request.param)


@pytest.fixture(scope="session")
def measured() -> Callable[..., Measurement]:
    """Make a measurement whose questions `wrong` are answered wrongly and all others rightly."""

    def make(
        subject: str,
        asked: int = 1319,
        wrong: range | set[int] = range(0),
        ended: Ended = Ended.MEASURED,
        last_slot_used: bool = True,
        **more: Any,
    ) -> Measurement:
        answers = tuple(
            Answer(
                id=number,
                prompt="1+1:",
                expected=2,
                text="1+1=3" if number in wrong else "1+1=2",
                outcome=Outcome.WRONG if number in wrong else Outcome.RIGHT,
                rank=0,
                slot=1,
                finish="stop",
                accept_length=None,
            )
            for number in range(asked)
        )
        facts: dict[str, Any] = {
            "detail": "",
            "accept_length": None,
            "slots": SlotUse(64, last_slot_used, 1.0, 20, asked),
            "memory": MemoryEvents(watched=True),
            "seconds": 1.0,
            "tokens": 10 * asked,
        }
        return Measurement(
            subject=subject, ended=ended, asked=asked, answers=answers, **(facts | more)
        )

    return make
