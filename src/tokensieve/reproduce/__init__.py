"""The paper's experiments, each with its claim, the paper's numbers, a criterion, and a verdict.

Start at `experiments.toml` for what they claim, `experiments` for what they measure, and `run` for how they are resumed.
"""
