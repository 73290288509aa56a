"""What the measurements mean: whether the model has learned, and whether the data supports what it uses."""
