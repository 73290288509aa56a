"""Two audits compared."""
