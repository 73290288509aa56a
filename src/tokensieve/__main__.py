"""`python -m tokensieve`."""

from tokensieve.cli import main

main()
