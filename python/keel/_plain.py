"""What `get_state` gives, as JSON and back: numbers, text, lists, dictionaries, tuples, bytes and arrays. Nothing in it is code."""

from __future__ import annotations

import base64
import json
from typing import Any

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

#: Of one environment's state.
MOST_CHARACTERS = 1 << 24
_MOST_DEPTH = 64


def dumps(value: Any) -> str:
    text = json.dumps(_plain(value, 0), separators=(",", ":"), allow_nan=True)
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"get_state() gave {len(text)} characters of JSON, at most {MOST_CHARACTERS} are saved")
    return text


def loads(text: str) -> Any:
    return _restored(json.loads(text))


def _plain(value: Any, depth: int) -> Any:
    if depth > _MOST_DEPTH:
        raise ValueError(f"get_state() is nested deeper than {_MOST_DEPTH}")
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)) and type(value) in (int, float):
        return value
    if np is not None:
        if isinstance(value, np.generic):
            value = np.asarray(value)
            return {"$scalar": _array(value)}
        if isinstance(value, np.ndarray):
            return {"$array": _array(value)}
    if isinstance(value, (int, float)):
        return float(value) if isinstance(value, float) else int(value)
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"$tuple": [_plain(one, depth + 1) for one in value]}
    if isinstance(value, list):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _plain(one, depth + 1) for key, one in value.items()}
        return {"$pairs": [[_plain(key, depth + 1), _plain(one, depth + 1)] for key, one in value.items()]}
    raise TypeError(
        f"get_state() gave a {type(value).__name__}: return numbers, text, lists, tuples, dictionaries, bytes and arrays"
    )


def _array(value: Any) -> Any:
    if value.dtype.kind not in "biufc":
        raise TypeError(f"get_state() gave an array of {value.dtype}: return arrays of numbers")
    return [value.dtype.str, list(value.shape), base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()]


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(one) for one in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, inner), = value.items()
        if key in ("$array", "$scalar"):
            if np is None:
                raise ValueError("the state has arrays, and NumPy is not installed here")
            dtype, shape, data = inner
            array = np.frombuffer(base64.b64decode(data), dtype=np.dtype(dtype)).reshape(shape).copy()
            return array if key == "$array" else array[()]
        if key == "$bytes":
            return base64.b64decode(inner)
        if key == "$tuple":
            return tuple(_restored(one) for one in inner)
        if key == "$pairs":
            return {_restored(name): _restored(one) for name, one in inner}
    return {key: _restored(one) for key, one in value.items()}
