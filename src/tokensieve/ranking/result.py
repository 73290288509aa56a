"""The result of `rank`: its files and its report."""

from __future__ import annotations

from dataclasses import asdict

from tokensieve.files import Content, csv_table, json_text
from tokensieve.ranking.data import RankingData
from tokensieve.ranking.report import report_of
from tokensieve.ranking.standings import features_table, ranks_table
from tokensieve.report.blocks import Report


class Ranking(RankingData):
    """A ranking of models, which `save` writes into a folder."""

    own_files = r"ranks\.csv|features\.csv|pictures/rank-(moves|features)\.(svg|png|pdf|csv)"

    def report(self) -> Report:
        """The ranking as blocks."""
        return report_of(self)

    def files(self) -> dict[str, Content]:
        """summary.json, ranks.csv and features.csv."""
        summary = json_text(self.to_dict())
        return {
            "summary.json": summary,
            "ranks.csv": csv_table(ranks_table(self.rows)),
            "features.csv": csv_table(features_table(self.effects)),
        }

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON values."""
        return {
            "source": self.source,
            "columns": dict(self.columns),
            "battles": self.n_battles,
            "rows": self.n_rows,
            "prompts": self.n_prompts,
            "anchor": self.anchor,
            "models": [asdict(row) | {"move": row.move} for row in self.rows],
            "extrapolated": [row.model for row in self.extrapolated],
            "features": [asdict(effect) for effect in self.effects],
            "candidates": self.n_candidates,
            "repeated_answers": [asdict(answer) for answer in self.repeated],
            "phrases": [asdict(phrase) for phrase in self.phrases],
            "judges": list(self.judges),
            "agreements": [asdict(agreement) for agreement in self.agreements],
            "people": None if self.people is None else asdict(self.people),
            "without_games": list(self.without_games),
            "notes": list(self.notes),
            "seed": self.seed,
            "version": self.version,
            "seconds": self.seconds,
        }
