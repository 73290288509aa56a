"""What judges and raters reward: models and style features ranked together, from pairwise battles.

Start with `bradley_terry` (the model), `style` (what is held fixed) and `run` (the steps).
"""
