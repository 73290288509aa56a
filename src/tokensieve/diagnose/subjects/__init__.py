"""The model and its inputs: loading, recognising, encoding, reading."""
