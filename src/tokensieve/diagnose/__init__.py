"""Other people's models: what each word does to their predictions, beside what the data says about it.

from tokensieve.diagnose import diagnose, load

found = diagnose(*load("my-model"), texts, labels)

Names are imported when they are first used: some need PyTorch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
