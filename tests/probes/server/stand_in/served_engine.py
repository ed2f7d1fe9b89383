"""The miniature engine behind HTTP: whatever waits is one batch, one batch at a time."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass, field


@dataclass
class Waiting:
    """One request; `done` is set when `text` and `tokens` are there."""

    prompt: str
    max_tokens: int
    text: str = ""
    tokens: int = 0
    finish: str = "stop"
    done: threading.Event = field(default_factory=threading.Event)


class ServedEngine:
    """The MiMo miniature on one state of the pools. Importing torch takes seconds: do it late."""

    def __init__(self, pools: str) -> None:
        from poolbisect.engine.config import Behind, EngineConfig
        from poolbisect.models.loading import load_mimo
        from poolbisect.pools.shipped import ShippedPools

        # As in mimo-canary, but small: a short buffer shows after a few questions.
        self._config = EngineConfig(
            max_running_requests=8,
            dp_size=2,
            behind_hidden_states=Behind.FUTURE_VERIFIED_IDS,
        )
        self._model = load_mimo()
        self._pools = ShippedPools(pools)
        self._waiting: queue.SimpleQueue[Waiting] = queue.SimpleQueue()
        self._steps = self._accepted = 0
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def accept_length(self) -> float | None:
        return self._accepted / self._steps if self._steps else None

    def complete(self, prompt: str, max_tokens: int) -> Waiting:
        one = Waiting(prompt, max_tokens)
        self._waiting.put(one)
        one.done.wait()
        return one

    def _serve(self) -> None:
        from poolbisect.engine.engine import Engine, Progress
        from poolbisect.engine.request import Request
        from poolbisect.tasks import arithmetic

        while True:
            batch = [self._waiting.get()]
            # The first of a crowd is not the crowd: see whether more arrive.
            while True:
                try:
                    batch.append(self._waiting.get(timeout=0.05))
                except queue.Empty:
                    break
            requests = {
                str(number): (
                    one,
                    Request(
                        str(number),
                        [arithmetic.BOS, *arithmetic.encode(one.prompt)],
                        one.max_tokens,
                        arithmetic.EOS,
                    ),
                )
                for number, one in enumerate(batch)
            }

            def on_progress(progress: Progress, requests: dict = requests) -> None:
                for request in progress.finished:
                    one = requests[request.id][0]
                    one.text = arithmetic.decode(request.output)
                    one.tokens = len(request.output)
                    one.finish = request.finished.value if request.finished else "stop"
                    self._steps += request.verify_steps
                    self._accepted += request.accepted
                    one.done.set()

            engine = Engine(self._config, self._model, self._pools)
            engine.run([request for _, request in requests.values()], on_progress)
