"""What `git cat-file --batch` writes, parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object of the database: its id, its type (`commit`, `tree`, `blob`) and its bytes."""

    id: str
    type: str
    content: bytes


def next_object(stream: IO[bytes]) -> GitObject | None:
    """The next answer, None where it is that there is none. EOFError at the end."""
    header = stream.readline()
    if not header:
        raise EOFError
    words = header.decode(errors="replace").split()
    # "<id> <type> <size>", else the name as given and what is wrong with it.
    if len(words) != 3 or not words[2].isdigit():
        return None
    return GitObject(words[0], words[1], stream.read(int(words[2]) + 1)[:-1])


def tree_modes(tree: GitObject) -> dict[bytes, bytes]:
    """File name to mode in one tree: entries are "<mode> <name>", NUL, and an id in binary."""
    found, rest = {}, tree.content
    while rest:
        entry, _, rest = rest.partition(b"\0")
        mode, _, name = entry.partition(b" ")
        found[name] = mode
        rest = rest[len(tree.id) // 2 :]
    return found
