"""What is learned from a corpus: labels, or preferences between two texts."""
