"""One part of the documents that predicts the label by itself: formatting, length, other columns, or one of several fields."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.base import AuditData, Check, Findings, Labels, Share
from tokensieve.auditing.findings import quoted
from tokensieve.escape import shown
from tokensieve.evidence.intervals import LEVEL
from tokensieve.text.counts import Ints
from tokensieve.text.tokenizers import FieldTokenizer
from tokensieve.wording import count, percent


class Alone(Check):
    """What no single word shows: together, small leans may predict the label."""

    name = "alone"
    title = "One part alone predicts the label"
    about = (
        "Formatting alone, length alone or the columns of --columns alone predict the test labels at least 5 points better than "
        "always predicting the largest class (95% CI), or one of several text fields predicts them as well as all fields together."
    )
    action = (
        "Should this part determine the label? If not, models can reach this accuracy without learning the task: balance the data, "
        "or compare your models with the accuracy of this part alone."
    )
    tasks = (Labels,)
    thorough = True
    least = 0.05  # above the largest class
    weight = 0.2  # of a document that this part predicts
    named = 15  # tokens that carry most of it

    def find(self, data: AuditData) -> Findings:
        train = data.train.counts
        names = [str(token) for token in train.tokens]
        majority = data.figures["majority_accuracy"]
        whole = data.task.accuracy(data.learned.f, data.test)
        form = list(range(data.words, train.n_types))
        parts = [("Formatting", form), ("Length", [s for s in form if "⟨length " in names[s]])]

        corpus = data.train.corpus
        prefixes = data.tokenizer.prefixes if isinstance(data.tokenizer, FieldTokenizer) else {}

        def own(*fields: str) -> list[int]:
            begin = tuple(prefixes[field] for field in fields)
            return [s for s, token in enumerate(names) if token.startswith(begin)]

        if corpus.columns:
            parts.append(
                (f"The metadata ({', '.join(shown(column, 40) for column in corpus.columns)})", own(*corpus.columns))
            )
        fields_from = len(parts)
        texts = [field for field in corpus.fields if field not in corpus.columns]
        parts += [(f"The field {shown(field, 40)}", own(field)) for field in texts if len(texts) > 1]
        for i, (name, columns) in enumerate(parts):
            types = np.array(columns, dtype=np.int64)
            found = self._accuracy(types, data)
            if found is None or found.low < majority + self.least or (i >= fields_from and found.high < whole.value):
                continue
            # the types of largest effect in their class
            worth = np.where(data.importance.q_value < LEVEL, np.abs(data.importance.effect), 0.0).max(axis=1)[types]
            order = np.argsort(-worth, kind="stable")[: self.named]
            tokens = tuple(names[s] for s in types[order[worth[order] > 0]]) or (names[types[0]],)
            details = [
                f"it reaches an accuracy of {found} on {count(found.of, 'test document')}, mostly through {quoted(tokens)}"
            ]
            details += [f"all fields together reach {percent(whole.value)}"] * (len(corpus.fields) > 1)
            # what it reaches of all that the model reaches: the rest of the words may say the same
            reached = min(1.0, (found.low - majority) / max(whole.value - majority, found.low - majority))
            without = f"always predicting the largest class, {percent(majority)}"
            yield self.finding(
                data,
                self.weight * (found.low - majority) * reached,
                f"{name} alone predicts {percent(found.value)} of test labels ({without})",
                tokens=tokens,
                evidence={"alone": found, "all": whole},
                total=found.of,
                details=tuple(details),
            )

    def _accuracy(self, types: Ints, data: AuditData) -> Share | None:
        """Test accuracy of the same model of these types alone; None without any."""
        if not 1 < len(types) < data.train.counts.n_types:
            return None
        return data.task.accuracy_of(types, data.train, data.test, data.learned.model, data.settings)
