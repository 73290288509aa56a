"""What the paper proves, checked on any data: one file for each object of the theory.

`generators` (data whose hypotheses are known) → `one_step` → `flow` (with `landscape`, its loss, and `curve`, its result) →
`selection` → `margin` → `assumptions`; `verify` runs them in order, `sweep` runs that over seeds and sizes.
"""
