"""tokensieve: find the tokens that predict a label, and see which of them a model relies on.

    from tokensieve import AttentionClassifier, audit, read_corpus

Names are imported when they are first used. No public name is also the name of a module, because importing the module would
replace it.
"""

import lazy_loader

__version__ = "0.3.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
