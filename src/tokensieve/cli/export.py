"""export: a trained model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tokensieve.cli.options import QuietOption, app, say
from tokensieve.errors import InputError


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="Folder that `train` or `audit` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="The .onnx file to write.", metavar="FILE")] = Path("model.onnx"),
    quiet: QuietOption = False,
) -> None:
    """Write the model as an ONNX graph from counts to answers (opset 18)."""
    from tokensieve.files import write_all
    from tokensieve.model_file import load_model
    from tokensieve.onnx_file import onnx_model

    if out.suffix != ".onnx":
        raise InputError(f"{str(out)!r} is no .onnx file name; give --out FILE.onnx")
    classifier = load_model(model)
    write_all(out.parent, {out.name: onnx_model(classifier)})
    say(quiet, f"{len(classifier.scores_):,} token types in {out}")
