"""Findings as the tools of a pipeline read them."""
