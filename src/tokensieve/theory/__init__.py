"""The paper's theorems, checked on data: `verify` runs one step, the flow, its limit and the claims
in order."""
