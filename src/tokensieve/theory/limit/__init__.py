"""The limit of the flow: the max-margin problem, and certificates of the limit of p."""
