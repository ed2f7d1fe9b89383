"""`poolbisect export-model`: the miniature's base weights as a Hugging Face folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="export-model")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
def command(folder: Path) -> int:
    """Write the base weights of the MiMo miniature to DIR, for servers that load such folders.

    The base model alone: a Llama of half a million parameters with a tokenizer of 19 tokens,
    without the layers that EAGLE drafts with. `poolbisect run mimo-canary --probe server --model
    DIR` then asks a real server the 1,319 problems.

    Exit code: 0 written, 2 DIR holds other files or cannot be written.
    """
    from poolbisect.models.export import export_base_model
    from poolbisect.models.loading import load_mimo

    for file in export_base_model(load_mimo(), folder):
        click.echo(str(file))
    return 0
