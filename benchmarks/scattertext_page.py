"""Scattertext's page of terms for the training half of IMDB; prints its seconds and memory as JSON. Imports nothing of tokensieve.

    PYTHON benchmarks/scattertext_page.py imdb_train.parquet

Scattertext asks for an older SciPy than tokensieve, so it needs an environment of its own:

    python -m venv /tmp/scattertext && /tmp/scattertext/bin/pip install scattertext six pandas pyarrow
    python benchmarks/peers.py audit --scattertext /tmp/scattertext/bin/python
"""

import json
import resource
import sys
import time


def main() -> None:
    begun = time.perf_counter()
    import pandas
    import scattertext

    frame = pandas.read_parquet(sys.argv[1], columns=["text", "label"])
    corpus = scattertext.CorpusFromPandas(
        frame, category_col="label", text_col="text", nlp=scattertext.whitespace_nlp_with_sentences
    ).build()
    page = scattertext.produce_scattertext_explorer(
        corpus,
        category="positive",
        category_name="positive",
        not_category_name="negative",
        minimum_term_frequency=5,
    )
    found = {
        "what": f"a page of terms ({len(page) / 1e6:.0f} MB)",
        "found": int(corpus.get_num_terms()),
    }
    found |= {"seconds": time.perf_counter() - begun}
    print(
        json.dumps(found | {"gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6})
    )


if __name__ == "__main__":
    main()
