"""The Python side of Keel. Nothing is imported before it is asked for, and nothing but the standard library is needed."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Each public name, and the module that has it.
_HOMES: dict[str, str] = {
    "spaces": "keel.spaces",
    "guard": "keel._guard",
    "mean_kl": "keel._guard",
    "snapshot": "keel._guard",
    "Guarded": "keel._guard",
    "GuardedPPO": "keel._guarded_ppo",
    "KeelCallback": "keel._callback",
    "Run": "keel._run",
    "log": "keel._run",
    "start": "keel._run",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'keel' has no attribute {name!r}")
    module = importlib.import_module(home)
    return module if home == f"keel.{name}" else getattr(module, name)
