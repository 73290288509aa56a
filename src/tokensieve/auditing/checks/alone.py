"""One part of the documents that predicts the label by itself: formatting, length, other columns, or one of several fields."""

from __future__ import annotations

import numpy as np

from tokensieve.arrays import Ints
from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Share
from tokensieve.auditing.checks.candidates import Candidate
from tokensieve.auditing.data import FewWords
from tokensieve.auditing.phrases import quoted
from tokensieve.escape import for_display
from tokensieve.wording import percent, plural

N_FEATURES_NAMED = 15  # those of most information


class Alone(Check):
    """No single word may show this: many weak associations together can predict the label."""

    name = "alone"
    title = "One part alone predicts the label"
    about = (
        "Formatting alone, length alone, one of the --columns or all of them together predict the test labels at least 5 points "
        "better than always predicting the largest class (95% CI), or one of several text fields predicts them as well as all "
        "fields together. The finding lists the 15 most informative features and the accuracy they reach by themselves."
    )
    action = (
        "Should this part determine the label? If not, models can reach this accuracy without learning the task: balance the data, "
        "or compare your models with the accuracy of this part alone."
    )
    tasks = (Labels,)
    thorough = True
    least = 0.05  # above the largest class
    weight = 0.2  # of a document that this part predicts

    def find(self, data: AuditContext) -> Findings:
        corpus, names = data.train.corpus, [str(token) for token in data.train.counts.tokens]
        majority, whole = (
            data.totals["majority_accuracy"],
            data.task.accuracy(data.learned.f, data.test),
        )
        form = list(range(data.n_words, len(names)))
        parts = [("Formatting", form), ("Length", [s for s in form if "⟨length " in names[s]])]
        prefixes = data.fields.prefixes if data.fields else {}

        def own(*fields: str) -> list[int]:
            begin = tuple(prefixes[field] for field in fields)
            return [s for s, token in enumerate(names) if token.startswith(begin)]

        parts += [
            (f"The column {for_display(column, 40)}", own(column)) for column in corpus.columns
        ]
        if len(corpus.columns) > 1:
            listed = ", ".join(for_display(column, 40) for column in corpus.columns)
            parts.append((f"The metadata ({listed})", own(*corpus.columns)))
        fields_from = len(parts)
        texts = [field for field in corpus.fields if field not in corpus.columns]
        parts += [
            (f"The field {for_display(field, 40)}", own(field)) for field in texts if len(texts) > 1
        ]
        bits, best = (
            Candidate.information(data.importance.class_documents, data.class_sizes),
            majority + self.least,
        )
        for i, (name, columns) in enumerate(parts):
            types = np.array(columns, dtype=np.int64)
            found = _accuracy_of(types, data)
            if (
                found is None
                or found.low < majority + self.least
                or (i >= fields_from and found.high < whole.value)
            ):
                continue
            if name.startswith("The column"):
                best = max(best, found.value)
            elif name.startswith("The metadata") and found.low < best:
                continue  # one of the columns says as much
            types = types[np.argsort(-bits[types], kind="stable")][:N_FEATURES_NAMED]
            tokens = tuple(names[s] for s in types)
            few = _accuracy_of(types, data) if len(types) < len(columns) else None
            details = [f"it reaches an accuracy of {found} on {plural(found.of, 'test document')}"]
            most = f"its {len(types)} most informative features, {quoted(tokens)}"
            details.append(
                f"{most}, alone reach {percent(few.value)}" if few else f"these are {most}"
            )
            details += [f"all fields together reach {percent(whole.value)}"] * (
                len(corpus.fields) > 1
            )
            # what it reaches of all that the model reaches: the rest of the words may say the same
            reached = min(
                1.0, (found.low - majority) / max(whole.value - majority, found.low - majority)
            )
            without = f"{percent(majority)} by always predicting the largest class"
            yield self.finding(
                data,
                self.weight * (found.low - majority) * reached,
                f"{name} alone predicts {percent(found.value)} of test labels correctly ({without})",
                tokens=tokens,
                evidence={"alone": found, "all": whole} | ({"informative": few} if few else {}),
                n_documents=found.of,
                details=tuple(details),
            )


def few_words(audit: AuditContext) -> FewWords:
    """The most informative words, and the accuracy of a model of these and length alone.

    This is not a finding, because nobody can know whether a text should need more.
    """
    class_documents = audit.importance.class_documents[: audit.n_words]
    bits = Candidate.information(class_documents, audit.class_sizes)
    words = np.argsort(-bits, kind="stable")[:N_FEATURES_NAMED]
    names = [str(token) for token in audit.train.counts.tokens]
    lengths = [s for s in range(audit.n_words, len(names)) if "⟨length " in names[s]]
    types = np.append(words, np.array(lengths, dtype=np.int64))
    return FewWords(tuple(names[s] for s in words), _accuracy_of(types, audit))


def _accuracy_of(types: Ints, audit: AuditContext) -> Share | None:
    """Test accuracy of the same model trained on these types alone; None for one, none or all."""
    if not 1 < len(types) < audit.train.counts.n_types:
        return None
    return audit.task.accuracy_of(
        types, audit.train, audit.test, audit.learned.model, audit.settings
    )
