"""What the paper proves, checked on any data: `verify` runs one step, the flow, its limit and the claims in order."""
