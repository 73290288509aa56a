"""What a diagnosis of a large model costs: word pieces that the model passes over, or CPU seconds of one thread.

    python benchmarks/diagnose_cost.py --documents 100              # pieces, counted with a tiny stand-in
    python benchmarks/diagnose_cost.py --documents 100 --seconds    # seconds of a model with random weights
    python benchmarks/diagnose_cost.py --layers 12 --piece          # milliseconds for one piece, by which pieces become seconds

It imports only what version 0.2 has too, so that PYTHONPATH=OTHER/src measures another version. The stand-in is told to have the
weights of DistilBERT or BERT (--layers 6 or 12), by which the diagnosis sets its budget. A pass with gradients counts 2.06 times:
0.502 against 0.243 CPU seconds for 16 inputs of 32 pieces with three of DistilBERT's layers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
import transformers as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from diagnose_models import framed, train_tokenizer
from tokensieve.diagnose import DiagnoseSettings, diagnose

DATA = Path(
    os.environ.get("TOKENSIEVE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
WEIGHTS = {6: 42.5e6, 12: 85e6}  # without the table of words


def passes(weights: float, texts: list[str], seconds: float) -> float:
    """As `tokensieve.diagnose.run._passes`, of a model with so many weights."""
    pieces = float(np.mean([min(len(text) / 4 + 2, 64) for text in texts]))
    return seconds * 5e10 / (2 * weights * pieces + 1e6)


def main() -> None:
    """Diagnose one model, and print what it cost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--layers", type=int, default=6, choices=WEIGHTS)
    parser.add_argument(
        "--seconds", action="store_true", help="a model of full size, rather than a count"
    )
    parser.add_argument(
        "--piece", action="store_true", help="the time that a model of full size takes for a piece"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = pl.read_parquet(DATA / "yelp.parquet").filter(
        pl.col("stars").cast(pl.Int64).is_in([1, 5])
    )
    table = table.sample(3000, seed=3)
    texts = [text[:400] for text in table["text"]]
    labels = ["positive" if int(stars) == 5 else "negative" for stars in table["stars"]]
    tokenizer = framed(train_tokenizer("wordpiece", texts, 12_000), False)
    torch.manual_seed(0)
    small = (
        {}
        if options.seconds or options.piece
        else {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    )
    kind = tf.BertConfig if not small and options.layers == 12 else tf.DistilBertConfig
    model = tf.AutoModelForSequenceClassification.from_config(
        kind(num_labels=2, pad_token_id=0, **small)
    )
    model.config.id2label, model.config.label2id = (
        {0: "negative", 1: "positive"},
        {"negative": 0, "positive": 1},
    )
    if options.piece:
        batch, taken = torch.randint(5, 10_000, (16, 64)), []
        with torch.inference_mode():
            for _ in range(6):
                start = time.process_time()
                model.eval()(input_ids=batch, attention_mask=torch.ones_like(batch))
                taken.append(1000 * (time.process_time() - start) / batch.numel())
        print(json.dumps({"milliseconds a piece": round(float(np.median(taken)), 3)}))
        return
    with torch.no_grad():  # predictions that differ from document to document
        for name, weights in model.named_parameters():
            if name.startswith("classifier"):
                weights.mul_(20)
    done, forward = {False: 0, True: 0}, type(model).forward

    def counted(self: Any, *args: Any, **given: Any) -> Any:
        done[torch.is_grad_enabled()] += int(given["input_ids"].numel())
        return forward(self, *args, **given)

    if not options.seconds:
        type(model).forward = counted
        if find_spec(
            "tokensieve.diagnose.run"
        ):  # the budget of 0.2, which has no such module, is a constant
            run = import_module("tokensieve.diagnose.run")
            run._passes = lambda known, some, settings, seconds: passes(
                WEIGHTS[options.layers], some, seconds
            )
    start = time.process_time()
    diagnose(
        model,
        tokenizer,
        texts[: options.documents],
        labels[: options.documents],
        DiagnoseSettings(max_length=64),
    )
    used = time.process_time() - start
    pieces = round(done[False] + 2.06 * done[True])
    print(json.dumps({"seconds": round(used, 1)} if options.seconds else {"pieces": pieces}))


if __name__ == "__main__":
    main()
