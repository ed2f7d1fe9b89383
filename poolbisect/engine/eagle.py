"""Multi-layer EAGLE: draft with the MTP layers, verify with the target, keep draft KV right.

MTP layer k keys position p by token p+1+k, which is still a draft when p is first seen. The next
step therefore writes the last k positions again ("KV reversion"); their target hidden states come
from `req_to_hidden_states_pool`, (slots, steps - 1, hidden), written at the end of every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from poolbisect.engine.attention import Keys
from poolbisect.engine.forward import Forward
from poolbisect.engine.graph_inputs import GraphInputs, RowInputs
from poolbisect.engine.rank import Rank


@dataclass(frozen=True, slots=True)
class Verified:
    """Outcome of a verify: predicted tokens (rows, width) and how many of them are accepted."""

    predicted: Tensor
    accept_lens: Tensor


def verify(inputs: Tensor, predicted: Tensor) -> Verified:
    """Accept drafts as long as each equals the prediction before it, and one token more.

    `inputs` (rows, width) is the last verified token and the drafts; `predicted` has its shape.
    """
    agreed = (inputs[:, 1:] == predicted[:, :-1]).long().cumprod(dim=1)
    return Verified(predicted, agreed.sum(dim=1) + 1)


@dataclass(frozen=True, slots=True)
class ExtendRows:
    """One rank's share of a draft extend.

    `tokens` (rows, width + steps - 1) begins with the token after each position; `hidden`
    (rows, width, hidden) are the target's; row i's last true token stands at `last[i]`; `first`
    is the position of the first of the width positions.
    """

    rank: Rank
    tokens: Tensor
    hidden: Tensor
    first: Tensor
    last: Tensor
    slots: Tensor
    requests: tuple[str | None, ...]
    graph: GraphInputs | None
    reverts: bool
    padded_writes: bool = False


def draft_extend(
    forward: Forward, steps: int, parts: Sequence[ExtendRows]
) -> list[tuple[Tensor, Tensor]]:
    """Run the MTP layers one after another; per rank draft probabilities and ids (rows, steps)."""
    hidden = [part.hidden for part in parts]
    rows = [part.last.shape[0] for part in parts]
    every = torch.arange(max(rows), device=hidden[0].device)
    best, tokens = [], []
    keys: Keys | None = None
    for depth in range(steps):
        batch, at = [], []
        for number, part in enumerate(parts):
            back = depth if part.reverts else 0
            if back:
                hidden[number] = _with_reverted(part, hidden[number], steps - 1 - depth)
            batch.append((part.rank, _inputs(part, depth, back)))
            at.append(part.last + back)
        output, keys = forward.draft(depth, batch, hidden, at, keys)
        probability, token = forward.draft_logits(depth, output).softmax(-1).max(dim=-1)
        best.append(probability)
        tokens.append(token)
        if depth + 1 < steps:
            for part, mine in zip(parts, torch.split(token, rows), strict=True):
                part.tokens[every[: mine.shape[0]], part.last + 1 + depth] = mine
    _remember(steps, parts, hidden)
    return list(
        zip(
            torch.split(torch.stack(best, dim=1), rows),
            torch.split(torch.stack(tokens, dim=1), rows),
            strict=True,
        )
    )


def _with_reverted(part: ExtendRows, hidden: Tensor, entry: int) -> Tensor:
    """`hidden` with the state of the reverted token at its head, read for padded rows as well."""
    remembered = part.rank.hidden_states.read_rows(part.slots, part.requests)
    return torch.cat((remembered[:, entry : entry + 1], hidden), dim=1)


def _inputs(part: ExtendRows, depth: int, back: int) -> RowInputs:
    """Tokens, positions and KV locations of MTP layer `depth`, `back` positions reverted."""
    width = part.hidden.shape[1] + back
    start = 0 if part.reverts else depth
    tokens = part.tokens[:, start : start + width]
    offsets = torch.arange(-back, width - back, device=tokens.device)
    positions = (part.first[:, None] + offsets).clamp_min(0)
    # Rows without a request (padding) keep to location 0.
    real = len(part.requests)
    out_locs = torch.zeros_like(positions)
    table = part.rank.req_to_token
    out_locs[:real] = table.read_cells(
        part.slots[:real, None], positions[:real], part.requests
    ).long()
    if part.graph is None:
        return RowInputs(tokens, positions, out_locs, part.slots, part.requests)
    return part.graph.fill(
        tokens.shape[0], tokens[:real], positions[:real], out_locs[:real], part.requests
    )


def _remember(steps: int, parts: Sequence[ExtendRows], hidden: Sequence[Tensor]) -> None:
    """Write the hidden states of each row's last steps - 1 true tokens to its slot."""
    for part, states in zip(parts, hidden, strict=True):
        written = part.last.shape[0] if part.padded_writes else len(part.requests)
        if written == 0:
            continue
        reverted = steps - 1 if part.reverts else 0
        last = part.last[:written] + reverted
        window = last[:, None] + torch.arange(2 - steps, 1, device=last.device)
        rows = torch.arange(written, device=last.device)[:, None]
        part.rank.hidden_states.write_rows(
            part.slots[:written], states[rows, window], part.requests
        )
