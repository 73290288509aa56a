"""How words, patterns, forms and orders of words affect a model's predictions."""
