"""Whose fault an exception is: the code under test, or a stand-in of ours that had no answer."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from poolbisect.errors import InfrastructureError, PoolbisectError
from poolbisect.memory.arena import IllegalAccessError
from poolbisect.memory.guard import OutOfRangeError

_ALLOCATION_FAILED = "can't allocate memory"  # how PyTorch's CPU allocator words it
_DEVICE_WORDS = ("CUDA", "NVIDIA", "cuda")


class SubjectFault(PoolbisectError):  # noqa: N818 - the project's term for it
    """The code under test raised by itself; the original exception is `__cause__`."""

    exit_code = 1


class StubGap(PoolbisectError):  # noqa: N818 - the project's term for it
    """The code under test asked for something our stand-ins cannot answer: it is untestable."""

    exit_code = 4


class Unanswered(BaseException):
    """Raised by a stand-in inside sliced code, which must not be able to swallow it."""


class Guesses:
    """What stand-ins answered without knowing the answer, for example the truth of a setting.

    An exception after a guess proves nothing about the code under test, for the guess may have
    caused it.
    """

    def __init__(self) -> None:
        self.names: list[str] = []

    def note(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


@contextmanager
def judged(subject: str, doing: str, guesses: Guesses) -> Iterator[None]:
    """Run sliced code and attribute what it raises.

    Raises:
        SubjectFault: the code raised, and nothing of ours can have caused that.
        StubGap: a stand-in could not answer or had guessed before the code raised, or this
            host's PyTorch lacks what the code asks for.
        InfrastructureError: the host ran out of memory.
        IllegalAccessError, OutOfRangeError: raised by memory without bounds, as they are.
    """
    try:
        yield
    except (PoolbisectError, IllegalAccessError, OutOfRangeError):
        raise  # the last two come from the memory that the code was given
    except Unanswered as gap:
        raise StubGap(f"{subject} cannot be tested: {doing} needs {gap}.") from gap
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise InfrastructureError(f"Out of memory in {doing} of {subject}.") from error
    except Exception as error:
        if _ALLOCATION_FAILED in str(error):
            raise InfrastructureError(f"Out of memory in {doing} of {subject}.") from error
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        ours = _our_part(error, guesses)
        if ours is not None:
            raise StubGap(
                f"{subject} cannot be tested: {doing} raised {what}, which may be due to {ours}."
            ) from error
        raise SubjectFault(f"{subject} itself fails: {doing} raised {what}.") from error


def _our_part(error: Exception, guesses: Guesses) -> str | None:
    """What of ours may have caused an exception in sliced code, or None."""
    if guesses.names:
        return f"stand-ins that had to guess {', '.join(guesses.names)}"
    if "PoolbisectStub" in str(error):  # PyTorch names the type of an argument it cannot take
        return "a stand-in given as an argument"
    if isinstance(error, AttributeError) and isinstance(error.obj, types.ModuleType):
        return f"the version of {error.obj.__name__} installed here"
    if not torch.cuda.is_available() and any(word in str(error) for word in _DEVICE_WORDS):
        return "the lack of a CUDA device here"
    return None
