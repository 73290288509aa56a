"""The limit of the flow: the max-margin problem, and the certificates of what p converges to."""
