"""tokensieve: find the tokens that predict a label, and see which of them a model relies on.

    from tokensieve import AttentionClassifier, audit, read_corpus

Names are imported when they are first used. No public name is also the name of a module, because
importing the module would replace it.
"""

import gc
import os
import warnings

import lazy_loader

__version__ = "0.4.0"
_public_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
_RENAMED = {"answers": "logits"}  # until 0.3 → since 0.4


def __getattr__(name: str) -> object:
    if name not in _RENAMED:
        return _imported(name)
    warnings.warn(
        f"tokensieve.{name} is now tokensieve.{_RENAMED[name]}", DeprecationWarning, stacklevel=2
    )
    return _imported(_RENAMED[name])


def _imported(name: str) -> object:
    """A public name, imported without garbage collections.

    What libraries make when they are imported lives as long as the process, and the collector would
    look through it again and again: a tenth of the time until a first classifier is fitted.
    """
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return _public_name(name)
    finally:
        if is_collecting:
            gc.enable()


def _find_room_for_kernels() -> None:
    """Numba ends with an error where it can write its cache neither beside the code nor in the
    user's home, as in some containers.

    The cache is made of pickles, so the folder that takes it in that case is one that nobody else
    can write.
    """
    home = os.path.expanduser("~")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    places = os.path.dirname(__file__), cache if os.path.exists(cache) else home
    if (
        "NUMBA_CACHE_DIR" in os.environ
        or os.name != "posix"
        or any(os.access(place, os.W_OK) for place in places)
    ):
        return
    import atexit
    import shutil
    import tempfile

    folder = os.path.join(tempfile.gettempdir(), f"tokensieve-{os.getuid()}")
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        status = os.lstat(folder)
        if (
            status.st_mode != 0o40700 or status.st_uid != os.getuid()
        ):  # a folder, for its owner only, and ours
            folder = tempfile.mkdtemp(prefix="tokensieve-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder


_find_room_for_kernels()
