"""Data against model: the audit, its findings, and what follows from them.

Not `audit`: that is the public function, and a package of its name would take its place.
"""
