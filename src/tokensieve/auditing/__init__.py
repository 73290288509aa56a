"""The audit: data compared with a model, and findings to act on. (A package named `audit` would
hide the public function.)"""
