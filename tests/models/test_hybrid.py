"""The hybrid miniature: the same maths as `transformers`, and states that a server can keep."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from poolbisect.models import hybrid, train_hybrid, training
from poolbisect.models.hybrid import HybridConfig, HybridMiniature, Mamba2Mixer, MambaLayer
from poolbisect.tasks import arithmetic

WEIGHTS = Path(hybrid.__file__).parent / "weights" / "hybrid.safetensors"
LOGIT_TOLERANCE = 2e-4  # float32, logits up to 18; measured 2e-5
STATE_TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def model() -> HybridMiniature:
    return hybrid.load(WEIGHTS)


@pytest.fixture(scope="module")
def bamba(model: HybridMiniature, tmp_path_factory: pytest.TempPathFactory):
    """`transformers`' model of the shipped file, loaded as any Bamba checkpoint is."""
    transformers = pytest.importorskip("transformers", minversion="5.0")
    folder = tmp_path_factory.mktemp("bamba")
    shutil.copy(WEIGHTS, folder / "model.safetensors")
    config = {"model_type": "bamba", "architectures": ["BambaForCausalLM"], "dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config | model.config.as_dict()))
    loaded, info = transformers.BambaForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    return loaded.eval()


def held_out(count: int, operations: int, level: str = arithmetic.HARD) -> list[arithmetic.Problem]:
    return list(arithmetic.draw_problems(random.Random(1), [(operations, level, count)]))


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    tokens = torch.full((len(rows), int(lengths.max())), arithmetic.PAD)
    for index, row in enumerate(rows):
        tokens[index, : len(row)] = torch.tensor(row)
    return tokens, lengths


@torch.inference_mode()
def serve(model: HybridMiniature, prompts: list[list[int]]) -> Iterator[Tensor]:
    """Logits (requests, vocab) step by step, as a server computes them: states and KV per request.

    After each, the greedy token of every request is fed back.
    """
    tokens, lengths = padded(prompts)
    rows, room = torch.arange(len(prompts)), model.config.max_position_embeddings
    cos, sin = hybrid.rotary_tables(model.config, room)
    conv, ssm, keys, values = {}, {}, {}, {}

    x = model.embed(tokens)
    for index, layer in enumerate(model.layers):
        normed = layer.input_layernorm(x)
        if isinstance(layer, MambaLayer):
            mixed, conv[index], ssm[index] = layer.mamba.prefill(normed, lengths)
        else:
            width = tokens.shape[1]
            mixed = layer.self_attn(normed, cos[:width], sin[:width])
            _, k, v = layer.self_attn.qkv(normed, cos[:width], sin[:width])
            keys[index] = functional.pad(k, (0, 0, 0, 0, 0, room - width))
            values[index] = functional.pad(v, (0, 0, 0, 0, 0, room - width))
        x = layer.after_mixer(x, mixed)
    logits = model.logits(x[rows, lengths - 1])

    while True:
        yield logits
        x = model.embed(logits.argmax(-1))
        for index, layer in enumerate(model.layers):
            normed = layer.input_layernorm(x)
            if isinstance(layer, MambaLayer):
                mixed, conv[index], ssm[index] = layer.mamba.step(normed, conv[index], ssm[index])
            else:
                q, k, v = layer.self_attn.qkv(normed, cos[lengths], sin[lengths])
                keys[index][rows, lengths], values[index][rows, lengths] = k, v
                seen = torch.arange(room) <= lengths[:, None]
                out = functional.scaled_dot_product_attention(
                    q[:, :, None],
                    keys[index].transpose(1, 2),
                    values[index].transpose(1, 2),
                    attn_mask=seen[:, None, None],
                    enable_gqa=True,
                )
                mixed = layer.self_attn.o_proj(out.flatten(1))
            x = layer.after_mixer(x, mixed)
        lengths = lengths + 1
        logits = model.logits(x)


def test_logits_of_whole_sequences_equal_those_of_transformers(model, bamba) -> None:
    tokens, _ = next(training.batches(random.Random(3), 16))
    with torch.inference_mode():
        ours = model.logits(model.hidden_states(tokens))
        theirs = bamba(input_ids=tokens, use_cache=False).logits
    torch.testing.assert_close(ours, theirs, rtol=0, atol=LOGIT_TOLERANCE)


def test_cached_generation_equals_that_of_transformers_up_to_near_ties(model, bamba) -> None:
    prompts = [arithmetic.prompt_tokens(problem) for problem in held_out(60, 3)]
    width = max({len(row) for row in prompts}, key=[len(row) for row in prompts].count)
    prompts = [row for row in prompts if len(row) == width]
    assert len(prompts) >= 8

    theirs = bamba.generate(
        torch.tensor(prompts),
        attention_mask=torch.ones(len(prompts), width, dtype=torch.long),
        max_new_tokens=40,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    running = torch.ones(len(prompts), dtype=torch.bool)
    for ours, logits in zip(serve(model, prompts), theirs.logits, strict=False):
        torch.testing.assert_close(ours[running], logits[running], rtol=0, atol=LOGIT_TOLERANCE)
        same = ours.argmax(-1) == logits.argmax(-1)
        best, second = logits.topk(2, dim=-1).values.unbind(-1)
        assert (best - second)[running & ~same].lt(2 * LOGIT_TOLERANCE).all()
        running &= same & (logits.argmax(-1) != arithmetic.EOS)
    assert not running.any(), "some request neither ended nor met a near-tie"


def test_serving_from_states_equals_recomputing_the_whole_text(model) -> None:
    problems = [problem for operations in (1, 3, 6) for problem in held_out(3, operations)]
    rows = [arithmetic.prompt_tokens(problem) for problem in problems]
    for logits in itertools.islice(serve(model, [list(row) for row in rows]), 30):
        tokens, lengths = padded(rows)
        with torch.inference_mode():
            whole = model.logits(model.hidden_states(tokens))[torch.arange(len(rows)), lengths - 1]
        torch.testing.assert_close(logits, whole, rtol=0, atol=LOGIT_TOLERANCE)
        for row, token in zip(rows, logits.argmax(-1).tolist(), strict=True):
            row.append(token)


def random_mixer() -> Mamba2Mixer:
    torch.manual_seed(5)
    config = HybridConfig(
        arithmetic.VOCAB_SIZE, hidden_size=32, mamba_n_heads=4, mamba_chunk_size=4
    )
    return Mamba2Mixer(config).requires_grad_(False)


@given(st.lists(st.integers(0, 11), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_prefill_of_padded_prompts_leaves_the_states_of_single_steps(lengths, seed) -> None:
    mixer, generator = random_mixer(), torch.Generator().manual_seed(seed)
    width = max(*lengths, 1)
    x = torch.randn(len(lengths), width, 32, generator=generator)
    y, conv, ssm = mixer.prefill(x, torch.tensor(lengths))

    for row, length in enumerate(lengths):
        conv_row = torch.zeros(1, *mixer.config.conv_state_shape)
        ssm_row = torch.zeros(1, *mixer.config.ssm_state_shape)
        for position in range(length):
            stepped, conv_row, ssm_row = mixer.step(x[row : row + 1, position], conv_row, ssm_row)
            torch.testing.assert_close(y[row, position], stepped[0], rtol=0, atol=STATE_TOLERANCE)
        torch.testing.assert_close(conv[row], conv_row[0], rtol=0, atol=STATE_TOLERANCE)
        torch.testing.assert_close(ssm[row], ssm_row[0], rtol=0, atol=STATE_TOLERANCE)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_prefill_continues_from_given_states(first, second, seed) -> None:
    mixer = random_mixer()
    x = torch.randn(2, first + second, 32, generator=torch.Generator().manual_seed(seed))
    whole, conv, ssm = mixer.prefill(x)
    head, conv_between, ssm_between = mixer.prefill(x[:, :first])
    tail, conv_after, ssm_after = mixer.prefill(x[:, first:], None, conv_between, ssm_between)
    for parts, all_at_once in (
        (torch.cat((head, tail), dim=1), whole),
        (conv_after, conv),
        (ssm_after, ssm),
    ):
        torch.testing.assert_close(parts, all_at_once, rtol=0, atol=STATE_TOLERANCE)


def test_a_step_overwrites_the_states_it_was_given_and_only_those() -> None:
    mixer = random_mixer()
    conv_pool = torch.randn(5, *mixer.config.conv_state_shape)
    ssm_pool = torch.randn(5, *mixer.config.ssm_state_shape)
    conv, ssm = conv_pool[1:4], ssm_pool[1:4]
    x, before = torch.randn(3, 32), (conv_pool.clone(), ssm_pool.clone())
    _, conv_after, ssm_after = mixer.step(x, conv, ssm)
    assert conv_after is conv
    assert ssm_after is ssm
    _, conv_expected, ssm_expected = mixer.prefill(x[:, None], None, before[0][1:4], before[1][1:4])
    torch.testing.assert_close(conv, conv_expected, rtol=0, atol=STATE_TOLERANCE)
    torch.testing.assert_close(ssm, ssm_expected, rtol=0, atol=STATE_TOLERANCE)
    for row in (0, 4):
        assert torch.equal(conv_pool[row], before[0][row])
        assert torch.equal(ssm_pool[row], before[1][row])


@given(st.integers(1, 17), st.integers(1, 8), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_chunk_scan_is_the_recurrence(length, chunk, continued, seed) -> None:
    generator = torch.Generator().manual_seed(seed)
    heads, head_dim, d_state = 3, 2, 5

    def draw(*shape: int) -> Tensor:
        return torch.randn(2, *shape, generator=generator, dtype=torch.float64)

    x, b, c = draw(length, heads, head_dim), draw(length, d_state), draw(length, d_state)
    dt, a = draw(length, heads).exp(), -torch.arange(1.0, heads + 1, dtype=torch.float64)
    start = draw(heads, head_dim, d_state) if continued else None
    y, last = hybrid.chunk_scan(x, dt, a, b, c, chunk, start)

    state = torch.zeros(2, heads, head_dim, d_state, dtype=torch.float64)
    state = state if start is None else start
    for t in range(length):
        added = torch.einsum("bh,bhp,bn->bhpn", dt[:, t], x[:, t], b[:, t])
        state = (dt[:, t] * a).exp()[..., None, None] * state + added
        torch.testing.assert_close(y[:, t], torch.einsum("bhpn,bn->bhp", state, c[:, t]))
    torch.testing.assert_close(last, state)


def test_the_shipped_weights_solve_held_out_problems(model) -> None:
    problems = held_out(40, 2, arithmetic.EASY)
    answers = training.greedy_answers(
        lambda tokens: model.logits(model.hidden_states(tokens)), problems, 30
    )
    right = [
        arithmetic.grade(text, problem.answer) == "right"
        for text, problem in zip(answers, problems, strict=True)
    ]
    assert sum(right) >= 32


def test_training_never_sees_a_held_out_prompt_and_learns_only_the_answer() -> None:
    for tokens, targets in itertools.islice(training.batches(random.Random(2), 32), 16):
        for row, wanted in zip(tokens.tolist(), targets.tolist(), strict=True):
            text = arithmetic.decode(row)
            prompt = text[: text.index(":") + 1]
            assert not arithmetic.is_held_out(prompt)
            learnt = [token for token in wanted if token != training.IGNORED]
            assert learnt[-1] == arithmetic.EOS
            assert prompt + arithmetic.decode(learnt) == text


def test_the_training_command_writes_a_file_that_loads(tmp_path, capsys) -> None:
    path = tmp_path / "hybrid.safetensors"
    train_hybrid.main(["--out", str(path), "--steps", "2", "--batch", "4", "--problems", "1"])
    loaded = hybrid.load(path)
    assert loaded.config == HybridConfig(arithmetic.VOCAB_SIZE)
    printed = capsys.readouterr()
    assert [line.split()[:2] for line in printed.out.splitlines()] == [
        [level, str(operations)] for level in ("easy", "hard") for operations in range(1, 7)
    ]
    assert "hybrid 2/2 loss" in printed.err


@pytest.mark.parametrize(
    "sizes", [{"mamba_n_heads": 7}, {"num_attention_heads": 5}, {"num_attention_heads": 16}]
)
def test_sizes_that_do_not_divide_are_refused(sizes) -> None:
    with pytest.raises(ValueError, match="divide"):
        HybridConfig(arithmetic.VOCAB_SIZE, **sizes)
