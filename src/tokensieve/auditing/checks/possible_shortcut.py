"""Possible shortcuts: what may be an artefact, but is more likely of the subject."""

from __future__ import annotations

from tokensieve.auditing.artefacts.score import ACCUSED, POSSIBLE
from tokensieve.auditing.checks.api import AuditContext, Findings
from tokensieve.auditing.checks.shortcut import (
    MIN_FORM_DOCUMENTS,
    Shortcut,
    is_accused,
    suspects_of,
)
from tokensieve.wording import percent


class PossibleShortcut(Shortcut):
    """What the score of artefacts does not decide: worth a look, and never masked without one."""

    name = "possible_shortcut"
    title = "Possible shortcut"
    about = (
        f"Words and phrases that the score of shortcuts gives a probability of "
        f"{percent(POSSIBLE, 0)} to {percent(ACCUSED, 0)} of being an artefact: less likely than "
        f"not. So is formatting in fewer than {MIN_FORM_DOCUMENTS} documents, which may be the "
        "habit of few writers. No command masks them, and no accuracy is computed without them."
    )
    action = "Look at the documents, and mask it only if it comes from how they were made."
    action_on_form = action
    action_on_passage = action
    action_on_values = action
    descriptive = True
    yields_to = ("shortcut",)

    def find(self, audit: AuditContext) -> Findings:
        undecided = [one for one in suspects_of(audit) if not is_accused(one)]
        return self._findings(audit, undecided)
