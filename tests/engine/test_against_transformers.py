"""Greedy output of the engine is transformers' own, token for token, up to near-ties."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from poolbisect.engine.config import EngineConfig
from poolbisect.engine.engine import Engine
from poolbisect.engine.request import Request
from poolbisect.models.export import transformers_model
from poolbisect.models.loading import load_mimo
from poolbisect.pools.shipped import ShippedPools
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems

QUESTIONS = 96
LIMIT = 96
NEAR_TIE = 1e-3  # logits; float32 sums in another order differ by about 1e-5
MOST_NEAR_TIES = 2

PLAIN = {"speculative_num_steps": 0, "speculative_num_draft_tokens": 1}


@dataclass(frozen=True)
class Reference:
    prompts: list[list[int]]
    answers: list[list[int]]
    model: object


@pytest.fixture(scope="module")
def reference() -> Reference:
    prompts = [arithmetic.prompt_tokens(p) for p in load_problems(NAME, QUESTIONS)]
    model = transformers_model(load_mimo())
    answers = []
    for prompt in prompts:
        with torch.inference_mode():
            output = model.generate(
                torch.tensor([prompt]),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
                max_new_tokens=LIMIT,
                do_sample=False,
                eos_token_id=arithmetic.EOS,
                pad_token_id=arithmetic.PAD,
            )
        row = output[0, len(prompt) :].tolist()
        answers.append(row[: row.index(arithmetic.EOS)] if arithmetic.EOS in row else row)
    return Reference(prompts, answers, model)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({**PLAIN, "max_running_requests": 1, "dp_size": 1}, id="plain, one at a time"),
        pytest.param({**PLAIN, "max_running_requests": 64}, id="plain, 64 at once, two ranks"),
        pytest.param({"max_running_requests": 1, "dp_size": 1}, id="EAGLE, one at a time"),
        pytest.param({"max_running_requests": 7, "dp_size": 1}, id="EAGLE, 7 at once"),
        pytest.param({"max_running_requests": 64}, id="EAGLE, 64 at once, two ranks"),
        pytest.param({"speculative_num_steps": 2, "speculative_num_draft_tokens": 3}, id="2 steps"),
        pytest.param({"disable_overlap_schedule": True}, id="EAGLE without overlap"),
        pytest.param({"cuda_graph_max_bs": 8}, id="EAGLE, most batches without graph"),
        pytest.param({"page_size": 1}, id="EAGLE, pages of one token"),
    ],
)
def test_engine_equals_transformers(reference: Reference, changes: dict[str, int]) -> None:
    config = EngineConfig(**{"max_running_requests": 32, "dp_size": 2, **changes})
    engine = Engine(config, load_mimo(), ShippedPools("corrected"))
    requests = [
        Request(str(number), prompt, LIMIT, arithmetic.EOS)
        for number, prompt in enumerate(reference.prompts)
    ]
    engine.run(requests)
    differing = [
        (request, expected)
        for request, expected in zip(requests, reference.answers, strict=True)
        if request.output != expected
    ]
    for request, expected in differing:
        assert _gap_where_they_part(reference, request, expected) < NEAR_TIE, request.id
    assert len(differing) <= MOST_NEAR_TIES


def _gap_where_they_part(reference: Reference, request: Request, expected: list[int]) -> float:
    """Difference of the two best logits at the first token on which the two disagree."""
    pairs = zip([*request.output, -1], [*expected, -1], strict=False)
    at = next(number for number, (ours, theirs) in enumerate(pairs) if ours != theirs)
    tokens = torch.tensor([request.prompt + expected[:at]])
    with torch.inference_mode():
        logits = reference.model(tokens).logits[0, -1]  # type: ignore[operator]
    best = logits.topk(2).values
    return float(best[0] - best[1])
