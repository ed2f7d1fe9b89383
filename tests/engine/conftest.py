"""What the tests of served models share: requests, and an engine that has answered them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import nn

from poolbisect.engine.config import EngineConfig
from poolbisect.engine.engine import Engine, Progress
from poolbisect.engine.request import Request
from poolbisect.memory.guard import MemoryMode
from poolbisect.pools.interface import SubjectPools
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems

PLAIN = {"speculative_num_steps": 0, "speculative_num_draft_tokens": 1}


@pytest.fixture(scope="session")
def answered() -> Callable[..., tuple[list[Request], Engine]]:
    """Let a model on these pools answer the first problems, without speculation unless asked for.

    `watch` sees the engine after every step.
    """

    def serve(
        model: nn.Module,
        pools: SubjectPools,
        count: int,
        *,
        memory: MemoryMode = MemoryMode.GUARD,
        watch: Callable[[Engine], None] | None = None,
        **settings: object,
    ) -> tuple[list[Request], Engine]:
        asked = [
            Request(str(p.id), arithmetic.prompt_tokens(p), 96, arithmetic.EOS, noise_seed=p.id)
            for p in load_problems(NAME, count)
        ]
        config = EngineConfig(**{**PLAIN, **settings})  # type: ignore[arg-type]
        engine = Engine(config, model, pools, memory)

        def on_progress(progress: Progress) -> None:
            if watch is not None:
                watch(engine)

        engine.run(asked, on_progress)
        return asked, engine

    return serve
