"""The audit: data compared with a model, its findings, and what to do about them. The package is not named `audit`, because
importing it would replace the public function of that name."""
