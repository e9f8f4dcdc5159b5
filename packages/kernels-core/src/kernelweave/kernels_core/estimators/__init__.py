"""Estimators that run any registered algorithm; the only part that needs scikit-learn."""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("sklearn"):
            raise
        raise ImportError(
            f"{name} needs scikit-learn, which is not installed: pip install 'scikit-learn>=1.6'"
        ) from error
