"""Where annotators disagree, an audit says so and names the rows."""

from __future__ import annotations

from typing import Any

from tokensieve.auditing.run import audit
from tokensieve.auditing.settings import Settings

QUICK = Settings(baseline=False, thorough=False, validation_share=0.0)
N = 60
DISPUTED = 4  # every fourth document got another label from the second annotator
UNDECIDED = 8  # of every eighth a third annotator does not decide


def annotated(step: int) -> list[dict[str, Any]]:
    """Documents by three annotators, of whom the second disagrees on every `step`-th."""
    documents = []
    for i in range(N):
        label = ("dull", "fine")[i % 2]
        other = ("dull", "fine")[1 - i % 2]
        choices = [label, other if i % step == 0 else label, label]
        if i % UNDECIDED == 0:
            choices.pop()
        annotations = [{"user": user, "label": own} for user, own in enumerate(choices)]
        text = f"a {label} film about a river, number {i // 2}"
        documents.append({"text": text, "annotations": annotations})
    return documents


def test_disagreement_is_a_finding_with_its_rows() -> None:
    result = audit(annotated(DISPUTED), QUICK, text="text", label="annotations.label")
    finding = next(one for one in result.findings if one.kind == "disagreement")
    rows = list(range(1, N + 1, DISPUTED))
    assert sorted(finding.rows["row"]) == rows and finding.documents == len(rows)
    assert (finding.evidence["documents"].found, finding.evidence["documents"].of) == (len(rows), N)
    without_label = finding.rows.filter(finding.rows["part"] == "")
    assert list(without_label["row"]) == list(range(1, N + 1, UNDECIDED))


def test_one_annotator_agrees_with_himself() -> None:
    one = audit(annotated(DISPUTED), QUICK, text="text", label="annotations.label", annotator="1")
    alike = audit(annotated(N), QUICK, text="text", label="annotations.label")
    assert "disagreement" not in {finding.kind for finding in one.findings}
    share = next(f for f in alike.findings if f.kind == "disagreement").evidence["documents"]
    assert share.found == 1


def test_rows_of_annotations_give_the_same_finding() -> None:
    rows = [
        {"text": document["text"], "id": number, "rater": one["user"], "label": one["label"]}
        for number, document in enumerate(annotated(DISPUTED))
        for one in document["annotations"]
    ]
    listed = audit(annotated(DISPUTED), QUICK, text="text", label="annotations.label")
    found = audit(rows, QUICK)
    shares = [
        next(f for f in result.findings if f.kind == "disagreement").evidence["documents"]
        for result in (listed, found)
    ]
    assert shares[0] == shares[1]
    finding = next(f for f in found.findings if f.kind == "disagreement")
    assert {"train", ""} <= set(finding.rows["part"])  # "" of those without a majority
