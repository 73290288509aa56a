"""The model: softmax attention over token types, its training, explanations of its predictions, and
its files."""
