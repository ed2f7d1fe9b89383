"""The pool of mamba states: slots for the recurrent state of requests."""

from __future__ import annotations

from collections.abc import Iterable

RESERVED = 1


class MambaShortageError(RuntimeError):
    """A request that already has its request slot finds no free mamba slot: the server dies."""


class MambaPool:
    """A FIFO of `size` mamba slots; state tensors indexed by them need `rows` rows.

    Slots are 1..size and row 0 is padding, since SGLang #17404; before, with `first_slot` 0, they
    were 0..size-1 over the same rows. The tensors themselves are made by whoever serves a model,
    who clears a slot's state when the slot is handed out.
    """

    def __init__(self, size: int, first_slot: int = RESERVED) -> None:
        self.size = size
        self.rows = size + 1
        self._slots = range(first_slot, first_slot + size)
        self.free_slots = list(self._slots)

    def available_size(self) -> int:
        """How many mamba slots are free."""
        return len(self.free_slots)

    def alloc(self, count: int) -> list[int] | None:
        """`count` slots; None, with nothing changed, when too few are free."""
        if count > len(self.free_slots):
            return None
        taken, self.free_slots = self.free_slots[:count], self.free_slots[count:]
        return taken

    def free(self, slots: Iterable[int]) -> None:
        """Append `slots` to the queue, whatever they are: as upstream, nothing is checked."""
        self.free_slots += slots

    def clear(self) -> None:
        """Make every slot free again."""
        self.free_slots = list(self._slots)
