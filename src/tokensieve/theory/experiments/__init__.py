"""The paper's experiments, each with its claim, the paper's numbers, a criterion, and a verdict.

Start with `experiments.toml` (what they claim), `paper` and `asked` (what they measure), and `run`
(how they are resumed).
"""
