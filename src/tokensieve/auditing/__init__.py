"""The audit: data compared with a model, its findings, and what to do about them.

Not `audit`: that is the public function, and a package of its name would take its place.
"""
