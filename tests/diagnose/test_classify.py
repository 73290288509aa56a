"""A transformer beside others where a mark misleads: it also classifies changed copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from diagnose_models import planted_reviews
from tokensieve import read_corpus
from tokensieve.auditing.broken_link import (
    LinkGroup,
    Mark,
    documents_containing,
    group_accuracies,
    judge_of_model,
    judge_of_predictions,
    link_groups,
)
from tokensieve.diagnose.classify import text_classifier
from tokensieve.text.tokenizers import WordTokenizer


def test_a_transformer_that_learnt_a_shortcut_fails_where_it_misleads(
    shared_diagnosis: Any, tmp_path: Path
) -> None:
    made = planted_reviews(300, 11, planted=True)
    names = np.where(made.labels == 1, "positive", "negative")
    pl.DataFrame({"text": made.texts, "label": names}).write_csv(tmp_path / "held.csv")
    corpus = read_corpus(str(tmp_path / "held.csv"))
    predict = text_classifier(str(shared_diagnosis.source.parent / "model"), corpus)
    texts = corpus.frame["text"]
    labels = np.array(corpus.classes)[corpus.labels]
    known = predict(texts)
    assert (known == labels).mean() > 0.7

    mark = Mark((made.shortcut,), "positive")
    tokenizer = WordTokenizer()
    contains = documents_containing(texts, mark.tokens, tokenizer)
    groups = link_groups(texts, labels, contains, mark, tokenizer)
    everything = LinkGroup("all", texts, labels, np.arange(len(labels)))
    judge = judge_of_model(predict, known)
    results = {r.group: r for r in group_accuracies([everything, *groups], judge, judge)}
    assert results["inserted"].before < results["all"].before - 0.15

    by_file = judge_of_predictions(known)
    of_file = {r.group: r.before for r in group_accuracies(groups, by_file, by_file)}
    assert "inserted" not in of_file and of_file["without"] == results["without"].before
