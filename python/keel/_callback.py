"""KeelCallback: one name for Stable-Baselines3's callback and for that of transformers and TRL."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Optional

__all__ = ["KeelCallback"]

_HOMES = {"stable_baselines3": "keel._sb3", "transformers": "keel._transformers"}


def KeelCallback(*, framework: Optional[str] = None, **options: Any) -> Any:
    """The callback of the trainer that the program uses, which writes Keel's log as it trains.

    `framework` is "stable_baselines3" or "transformers"; without it, the one that the program has imported (Stable-Baselines3, if both).
    Options: name, root ("runs"), stop_on ("sick" or None), doctor_every (seconds); of Stable-Baselines3 also exact_kl (True).
    """
    home = _HOMES.get(framework if framework is not None else _guess())
    if home is None:
        raise ValueError(f"framework is {framework!r}: must be one of {', '.join(_HOMES)}")
    return importlib.import_module(home).Callback(**options)


def _guess() -> str:
    for name in _HOMES:
        if name in sys.modules:
            return name
    for name in _HOMES:
        if importlib.util.find_spec(name) is not None:
            return name
    raise ImportError("KeelCallback needs Stable-Baselines3 or transformers; for a loop of your own there is keel.log(step, {...})")
