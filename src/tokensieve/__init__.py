"""tokensieve: which tokens decide the label, which does the model look at, and do the two agree?"""

__version__ = "0.1.0"
