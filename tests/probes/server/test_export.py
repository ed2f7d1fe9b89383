"""The exported miniature is the model and the task that the engine serves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from poolbisect.cli import main
from poolbisect.errors import UsageError
from poolbisect.models.export import export_base_model
from poolbisect.models.loading import load_model
from poolbisect.tasks import arithmetic
from poolbisect.tasks.problem_set import NAME, load_problems


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("models") / "mimo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["poolbisect", "export-model", str(folder)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == 0
    return folder


@pytest.fixture(scope="module")
def loaded(exported: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(exported)
    return AutoTokenizer.from_pretrained(exported), model


def test_its_tokenizer_is_the_tasks(loaded: tuple[Any, Any]) -> None:
    tokenizer, _ = loaded
    for problem in load_problems(NAME, 200):
        tokens = tokenizer(problem.prompt).input_ids
        assert tokens == arithmetic.prompt_tokens(problem)
        whole = [*tokens, *arithmetic.encode(problem.chain), arithmetic.EOS]
        assert tokenizer.decode(whole, skip_special_tokens=True) == problem.prompt + problem.chain


def test_its_logits_are_the_models(loaded: tuple[Any, Any]) -> None:
    tokenizer, model = loaded
    ours = load_model("mimo").model
    named = dict(ours.named_parameters())
    for name, value in model.named_parameters():
        assert torch.equal(value, named[name]), name
    answer = model.generate(
        **{k: v for k, v in tokenizer("69+82:", return_tensors="pt").items() if "type" not in k},
        max_new_tokens=20,
    )
    assert tokenizer.decode(answer[0], skip_special_tokens=True) == "69+82:69+82=151"


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path, exported: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    model = load_model("mimo").model
    with pytest.raises(UsageError, match=r"holds thesis\.tex"):
        export_base_model(model, tmp_path)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert export_base_model(model, exported)  # type: ignore[arg-type]
    assert json.loads((exported / "config.json").read_text())["eos_token_id"] == arithmetic.EOS


def test_the_ngram_miniature_has_no_such_form(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="export mimo"):
        export_base_model(load_model("ngram").model, tmp_path)  # type: ignore[arg-type]
