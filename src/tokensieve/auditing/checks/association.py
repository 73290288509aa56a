"""Names and codes that are linked to a class, without deciding it."""

from __future__ import annotations

import numpy as np

from tokensieve.auditing.checks.api import AuditContext, Check, Findings, Labels, Share
from tokensieve.auditing.checks.shortcut import Shortcut
from tokensieve.auditing.checks.signs import Sign, usual_signs
from tokensieve.auditing.copies import without_copies
from tokensieve.auditing.phrases import of_class, quoted
from tokensieve.wording import percent, plural


class Association(Check):
    """For example, the agent's name at the end of every ticket, which shows who replied but not what the ticket was about."""

    name = "association"
    title = "Name or code linked to a class"
    about = (
        "Tokens in at least 20 documents that are part of a code, an address or a fixed phrase at the start or end of the text, "
        "or values of another column, and make one class at least 1.5 times as likely (q < 0.001), but not nearly certain."
    )
    action = (
        "Find out why it is associated with the label (author, system, date). Mask it if the association will not hold where "
        "your model is used."
    )
    action_on_values = Shortcut.action_on_values
    tasks = (Labels,)
    yields_to = ("shortcut",)
    least, sure, lift, most = 20, 0.001, 1.5, 0.8
    looked_into = 60

    def find(self, data: AuditContext) -> Findings:
        train, found, words = data.train.counts, data.importance, data.n_words
        share = data.class_sizes / data.class_sizes.sum()
        documents = found.documents[:words, None]
        rate = found.class_documents[:words] / np.maximum(documents, 1)
        fits = (
            (found.q_value[:words] < self.sure)
            & (found.effect[:words] > 0)
            & (documents >= self.least)
        )
        types, classes = np.nonzero(fits & (rate >= self.lift * share) & (rate < self.most))
        order = np.argsort(found.p_value[types, classes], kind="stable")[: self.looked_into]
        names, holders = (
            train.tokens[types[order]].astype(str).tolist(),
            list(train.holders(types[order])),
        )
        signs = Sign.of_each(names, holders, data.train.corpus, data.tokenizer, usual_signs(data))
        fields = data.fields
        kept = [
            (token, int(types[i]), int(classes[i]), held)
            for token, i, held, (borne, _) in zip(names, order, holders, signs, strict=True)
            if len(without_copies(data, held)) >= self.least
            and (
                {Sign.MARKUP, Sign.BOILERPLATE} & set(borne) or (fields and fields.is_value(token))
            )
        ]
        if not kept:
            return
        token, s, k, held = kept[0]
        right, label = (
            Share.count(int(found.class_documents[s][k]), int(found.documents[s])),
            train.classes[k],
        )
        more, value = len(kept) - 1, fields and fields.is_value(token)
        others = f"; the same is true of {plural(more, 'more token')}" if more else ""
        rates = f"are {of_class(label)} ({percent(share[k], 0)} overall)"
        tokens = tuple(dict.fromkeys(one[0] for one in kept))
        yield self.finding(
            data,
            0.1 * right.of / data.class_sizes.sum() * (right.low - share[k]),
            f"{percent(right.value, 0)} of documents containing {quoted([token])} {rates}{others}",
            held,
            n_documents=right.of,
            label=label,
            tokens=tokens,
            evidence={
                "decides": right,
                "base": Share.count(int(data.class_sizes[k]), int(data.class_sizes.sum())),
            },
            details=(
                f"{right.as_counts} documents containing it are {of_class(label)} ({right})",
                "a value of another column" if value else "part of a code or of a fixed phrase",
            ),
            action=self.action_on_values if value else self.action,
        )
