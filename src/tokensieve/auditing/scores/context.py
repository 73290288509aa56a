"""What the checks of an audit of scores read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tokensieve.arrays import Floats
from tokensieve.auditing.result import Audit
from tokensieve.auditing.settings import Settings
from tokensieve.evidence.score_ranks import ScoreImportance
from tokensieve.task.tasks import CorpusModel, Scores


@dataclass(frozen=True, eq=False)
class ScoreContext:
    """What the checks read.

    Attributes:
        learned: the trained model with its training and test documents.
        settings: of the audit.
        test_given: whether the test documents were given rather than drawn at random.
        importance: what the training documents alone say about each token type.
        out_of_fold: scores that models predict for training documents that they were not trained
            on, shape (n,); None if that was not computed.
        of_halves: an audit of two classes, documents above the mean score and the others.
    """

    learned: CorpusModel
    settings: Settings
    test_given: bool
    importance: ScoreImportance
    out_of_fold: Floats | None
    of_halves: Audit

    @property
    def task(self) -> Scores:
        """Trains and measures models of these documents."""
        assert isinstance(self.learned.task, Scores)
        return self.learned.task

    @property
    def thorough(self) -> bool:
        """Whether to look for near copies, doubtful scores and parts that predict by themselves."""
        return self.settings.thorough

    @cached_property
    def artefacts(self) -> dict[str, float]:
        """Token → probability that it is an artefact, of the shortcuts of `of_halves`.

        Whether "terrible" is the subject or an artefact does not depend on how finely its documents
        are rated, so the score of artefacts that was fitted for classes decides.
        """
        return {
            token: 1.0 if shortcut.probability is None else shortcut.probability
            for shortcut in self.of_halves.shortcuts
            for token in shortcut.tokens
        }

    @property
    def scores(self) -> Floats:
        """The score of each training document, shape (n,)."""
        numbers = self.learned.train.counts.numbers
        assert numbers is not None
        return numbers
