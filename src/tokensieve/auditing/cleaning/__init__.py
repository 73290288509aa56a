"""Cleaning data: cutting tokens out of texts, and what someone decided on the audit's page."""
