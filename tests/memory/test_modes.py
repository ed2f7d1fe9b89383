"""Silent and guard mode move identical bytes, whatever is accessed."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.memory.arena import Arena, IllegalAccessError
from poolbisect.memory.guard import Guard, MemoryMode
from poolbisect.memory.spaces import IndexSpace

MIB = 1 << 20
KINDS = {"f": torch.float32, "i": torch.int32, "l": torch.int64}

layouts = st.lists(
    st.tuples(
        st.sampled_from(sorted(KINDS)), st.integers(1, 40), st.sampled_from([(), (3,), (2, 5)])
    ),
    min_size=1,
    max_size=5,
)
accesses = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 4),
        st.lists(st.integers(-60, 120), min_size=1, max_size=6, unique=True),
        st.integers(0, 6),
    ),
    max_size=12,
)


def play(
    mode: MemoryMode,
    device: str,
    layout: list[tuple[str, int, tuple[int, ...]]],
    life: list[tuple[bool, int, list[int], int]],
) -> tuple[bytes, list[object], Guard]:
    """The mapped bytes after the accesses, what each of them gave, and the guard."""
    arena = Arena(device, 3 * MIB, Guard(mode))
    space = IndexSpace("request slot", 1, 8)
    space.take([0, 2], ["owner", "another"])
    buffers = [
        arena.allocate(f"b{number}", (rows, *rest), KINDS[kind], space)
        for number, (kind, rows, rest) in enumerate(layout)
    ]
    seen: list[object] = []
    for number, (is_read, which, indices, requests) in enumerate(life):
        buffer = buffers[which % len(buffers)]
        index = torch.tensor(indices, device=device)
        names = [f"r{row}" for row in range(requests)]
        try:
            if is_read:
                seen.append(buffer.read_rows(index, names).cpu().numpy().tobytes())
            else:
                shape = (len(indices), *buffer.tensor.shape[1:])
                generator = torch.Generator().manual_seed(number)
                values = torch.randint(1, 10**6, shape, generator=generator)
                buffer.write_rows(index, values.to(buffer.tensor.dtype).to(device), names)
        except IllegalAccessError as error:
            seen.append(str(error))
    return arena.elements(torch.uint8).cpu().numpy().tobytes(), seen, arena.guard


@given(layout=layouts, life=accesses)
def test_silent_and_guard_are_the_same_device(
    device: str,
    layout: list[tuple[str, int, tuple[int, ...]]],
    life: list[tuple[bool, int, list[int], int]],
) -> None:
    silent_bytes, silent_seen, _ = play(MemoryMode.SILENT, device, layout, life)
    guard_bytes, guard_seen, guard = play(MemoryMode.GUARD, device, layout, life)
    assert silent_bytes == guard_bytes
    assert silent_seen == guard_seen
    rows = [rows for _, rows, _ in layout]
    outside = {True: 0, False: 0}
    for is_read, which, indices, _ in life:
        limit = rows[which % len(rows)]
        outside[is_read] += sum(not 0 <= index < limit for index in indices)
    assert (guard.reads, guard.writes) == (outside[True], outside[False])
