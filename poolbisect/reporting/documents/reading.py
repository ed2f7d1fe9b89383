"""A report folder's result.json, as the document that its schema names."""

from __future__ import annotations

from pathlib import Path

import msgspec

from poolbisect.errors import UsageError
from poolbisect.formats.json_text import json_object
from poolbisect.formats.source_file import read_source
from poolbisect.reporting.documents.bisect import BisectDocument
from poolbisect.reporting.documents.config_bisect import ConfigBisectDocument
from poolbisect.reporting.documents.nightly import NightlyDocument
from poolbisect.reporting.documents.run import RunDocument
from poolbisect.reporting.documents.timeline import TimelineDocument

RESULT = "result.json"

AnyDocument = (
    RunDocument | BisectDocument | ConfigBisectDocument | TimelineDocument | NightlyDocument
)

_DOCUMENTS: dict[str, type[AnyDocument]] = {
    "poolbisect.run/1": RunDocument,
    "poolbisect.bisect/1": BisectDocument,
    "poolbisect.config-bisect/1": ConfigBisectDocument,
    "poolbisect.timeline/1": TimelineDocument,
    "poolbisect.nightly/1": NightlyDocument,
}


def report_home(path: Path) -> Path:
    """The folder that holds a result.json: `path`, or where the file `path` lies.

    UsageError where there is none; it names a run below the folder if there is one.
    """
    folder = path.parent if path.name == RESULT and path.is_file() else path
    if not folder.exists():
        raise UsageError(f"{path}: there is no such folder; give the folder of a run")
    if not folder.is_dir():
        raise UsageError(f"{path}: is a file; give the folder of a run, which holds {RESULT}")
    if not (folder / RESULT).is_file():
        below = next((found.parent for found in sorted(folder.rglob(RESULT))), None)
        hint = "give the folder of a run" if below is None else f"give a run below it, as {below}"
        raise UsageError(f"{folder}: holds no {RESULT}; {hint}")
    return folder


def read_document(folder: Path) -> AnyDocument:
    """The document in `folder`. UsageError, one sentence, names the file and what is wrong."""
    path = folder / RESULT
    source = read_source(path)
    schema = json_object(source).get("schema")
    known = _DOCUMENTS.get(schema) if isinstance(schema, str) else None
    if known is None:
        named = f"schema {schema[:60]!r}" if isinstance(schema, str) else "no schema"
        raise UsageError(
            f"{path}: has {named}, and reports are made of {', '.join(_DOCUMENTS)}; "
            "use the version of poolbisect that wrote it"
        )
    try:
        return msgspec.json.decode(source.text, type=known)
    except (msgspec.DecodeError, ValueError) as error:
        raise UsageError(
            f"{path}: is damaged or not a {schema} document ({str(error)[:300]}); run it again"
        ) from error
