"""What the paper proves, checked on documents of two classes: `verify` runs one step, the flow, its limit and the claims in order."""
