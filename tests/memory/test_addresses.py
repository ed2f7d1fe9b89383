"""A raw access moves exactly the bytes at base + index x row size, for any layout."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.memory.arena import Arena
from poolbisect.memory.guard import Guard, MemoryMode

MIB = 1 << 20
KINDS = [torch.float32, torch.int32, torch.int64]

layouts = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(1, 40), st.sampled_from([(), (3,), (7, 5)])),
    min_size=1,
    max_size=5,
)


@given(
    layout=layouts,
    writes=st.lists(st.tuples(st.integers(0, 4), st.integers(-50, 90), st.integers(1, 10**6))),
)
def test_reads_and_writes_are_plain_address_arithmetic(
    device: str,
    layout: list[tuple[torch.dtype, int, tuple[int, ...]]],
    writes: list[tuple[int, int, int]],
) -> None:
    arena = Arena(device, 3 * MIB, Guard(MemoryMode.SILENT))
    buffers = [
        arena.allocate(f"b{number}", (rows, *rest), kind)
        for number, (kind, rows, rest) in enumerate(layout)
    ]
    expected = bytearray(arena.mapped)
    for which, index, value in writes:
        buffer = buffers[which % len(buffers)]
        start = buffer.offset + index * buffer.row_bytes
        end = start + buffer.row_bytes
        if start < 0 or end > arena.mapped:
            continue
        at = torch.tensor([index], device=device)
        before = buffer.read_rows(at, "r").cpu().numpy().tobytes()
        assert before == bytes(expected[start:end])
        row = torch.full((1, *buffer.tensor.shape[1:]), value).to(buffer.tensor.dtype)
        buffer.write_rows(at, row.to(device), "r")
        expected[start:end] = row.numpy().tobytes()
    assert arena.elements(torch.uint8).cpu().numpy().tobytes() == bytes(expected)
    for buffer in buffers:
        owned = expected[buffer.offset : buffer.offset + buffer.size]
        assert buffer.tensor.cpu().numpy().tobytes() == bytes(owned)
