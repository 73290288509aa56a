"""Any text classifier: how each word affects its predictions, compared with what the data supports.

from tokensieve.diagnose import diagnose, load

found = diagnose(*load("my-model"), texts, labels)

Names are imported when first used, because some require PyTorch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
