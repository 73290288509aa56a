"""The paper's experiments, each with its claim, the paper's numbers, a criterion, and a verdict.

Start at `registry` for the list, `result` for what an experiment is, and `runner` for how they are run, kept and resumed.
"""
