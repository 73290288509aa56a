"""Scattertext's top list and cleanlab's check of spurious correlations on the planted sets of findings.py, without tokensieve.

    PYTHON benchmarks/findings_peers.py FOLDER

FOLDER is what `findings.py --export FOLDER` wrote: a Parquet file for each planted set (text, label, planted). For each file this
prints a line of JSON: the ten terms of largest scaled F-score of the planted class (scattertext's default; single words and
pairs), and cleanlab's scores of two columns: whether the mark was planted, which is the best that it could be given, and the same
column shuffled. Cleanlab reports a column whose score is below 0.3. Datalab runs this check on properties of images only, so its
class is called here. Both need an environment of their own:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install scattertext six cleanlab datasets pandas pyarrow
"""

import json
import sys
from pathlib import Path

import numpy
import pandas
import scattertext
from cleanlab.datalab.internal.spurious_correlation import SpuriousCorrelations


def main() -> None:
    for path in sorted(Path(sys.argv[1]).glob("*.parquet")):
        frame = pandas.read_parquet(path)
        label = frame["label"][frame["planted"]].iloc[0]
        corpus = scattertext.CorpusFromPandas(
            frame,
            category_col="label",
            text_col="text",
            nlp=scattertext.whitespace_nlp_with_sentences,
        ).build()
        scores = corpus.get_scaled_f_scores(label)
        terms = numpy.asarray(corpus.get_terms())
        planted = frame["planted"].to_numpy(dtype=float)
        columns = pandas.DataFrame(
            {"planted": planted, "shuffled": numpy.random.default_rng(0).permutation(planted)}
        )
        labels = frame["label"].astype("category").cat.codes.to_numpy()
        cleanlab = SpuriousCorrelations(columns, labels).calculate_correlations()["score"].tolist()
        top = [str(term) for term in terms[numpy.argsort(-scores, kind="stable")[:10]]]
        print(json.dumps({"file": path.stem, "scattertext": top, "cleanlab": cleanlab}), flush=True)


if __name__ == "__main__":
    main()
