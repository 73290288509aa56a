"""Statistics of the data alone, without any model."""
