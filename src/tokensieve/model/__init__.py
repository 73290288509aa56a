"""The model: softmax attention over token types, its training, its answers taken apart, and its files."""
