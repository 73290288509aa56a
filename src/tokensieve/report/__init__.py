"""The audit as one self-contained offline page, and its pictures as SVG and PNG files."""

from __future__ import annotations

from tokensieve.report.charts import pictures
from tokensieve.report.page import render

__all__ = ["pictures", "render"]
