"""Text in, counts out: sources, columns, labels, corpus, tokenizers, vocabulary, counts."""
