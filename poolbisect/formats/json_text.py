"""JSON and JSONL out of a file, with the line named where they break off."""

from __future__ import annotations

import json
from typing import Any

from poolbisect.formats.score_file import Source


def json_object(source: Source) -> dict[str, Any]:
    """The whole file as one JSON object. UsageError names the line where it is none."""
    try:
        document = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise source.error(_broken(source, error, error.lineno), error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise source.error("not JSON that can be read", 1) from error
    if not isinstance(document, dict):
        raise source.error(f"holds a JSON {_kind(document)}, not an object", 1)
    return document


def json_lines(source: Source) -> list[tuple[int, dict[str, Any]]]:
    """The JSON object of each line that is not blank, with its line number."""
    lines = []
    for number, text in enumerate(source.text.split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except json.JSONDecodeError as error:
            raise source.error(_broken(source, error, number), number) from error
        except (ValueError, RecursionError) as error:
            raise source.error("not JSON that can be read", number) from error
        if not isinstance(line, dict):
            raise source.error(f"holds a JSON {_kind(line)}, not an object", number)
        lines.append((number, line))
    if not lines:
        raise source.error("no score: the file is empty", 1)
    return lines


def _broken(source: Source, error: json.JSONDecodeError, line: int) -> str:
    last = source.text.rstrip().count("\n") + 1
    if line >= last:
        return "the JSON breaks off here; the file is half-written"
    return f"not JSON ({error.msg.lower()})"


def _kind(value: Any) -> str:
    names = {list: "list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "number")
