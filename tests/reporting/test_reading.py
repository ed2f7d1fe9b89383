"""Folders that cannot be rendered: each is refused in one sentence that names the file."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolbisect.errors import UsageError
from poolbisect.reporting.documents.reading import read_document, report_home
from poolbisect.reporting.files import write_reports
from tests.reporting.conftest import MakeRun, bisect_document, night_document


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "result.json:1"),
        ("{", "half-written"),
        ("[]", "a JSON list, not an object"),
        ("{}", "has no schema"),
        ('{"schema": "poolbisect.run/99"}', "has schema 'poolbisect.run/99'"),
        ('{"schema": 1}', "has no schema"),
        ('{"schema": "poolbisect.run/1"}', "missing required field"),
        ('{"schema": "poolbisect.bisect/1", "verdict": 3}', "Expected `str`, got `int`"),
    ],
)
def test_a_file_that_is_no_document_is_named(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(UsageError) as refused:
        write_reports(tmp_path)
    assert words in str(refused.value)
    assert str(tmp_path / "result.json") in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["result.json"]


def test_a_folder_without_a_result_names_a_run_below_it(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run()
    with pytest.raises(UsageError, match=r"holds no result\.json") as refused:
        report_home(tmp_path / "reports")
    assert str(folder) in str(refused.value)
    with pytest.raises(UsageError, match="there is no such folder"):
        report_home(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is a file; give the folder"):
        report_home(folder / "original.jsonl")
    assert report_home(folder / "result.json") == folder


def test_fields_of_a_later_version_are_passed_over(make_run: MakeRun) -> None:
    folder = make_run(brand_new={"a": [1, 2]})
    assert len(write_reports(folder)) == 3


def test_a_file_that_cannot_be_written_leaves_the_old_one(make_run: MakeRun) -> None:
    folder = make_run()
    (folder / "report.html").mkdir()
    with pytest.raises(UsageError, match=r"report\.html: cannot be written"):
        write_reports(folder)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(data=st.data(), value=Json)
def test_a_document_with_any_field_replaced_is_rendered_or_refused(
    data: st.DataObject, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = data.draw(st.sampled_from([bisect_document(scored=True), night_document()]))
    place = document
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = value
            break
        place = place[key]
    folder = tmp_path_factory.mktemp("any")
    (folder / "result.json").write_text(json.dumps(document))
    with suppress(UsageError):
        read_document(folder)
        assert len(write_reports(folder)) == 3
