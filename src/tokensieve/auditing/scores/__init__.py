"""Audits of documents whose labels are scores: stars, ratings, a toxicity from 0 to 1."""
