"""Spaces as Keel has them, and their values as rows of float32 numbers: observations to rows, rows to actions.

Spaces are known by the names of their classes, so that those of Gymnasium, of the older gym and of `keel.spaces` are all
the same here. Categories of observations become one number each (as Gymnasium's own `flatten` has it), because a network
takes an index for a quantity; those of actions stay indices, counted from 0.
"""

from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

try:
    import numpy as np
except ImportError:  # the standard library is enough
    np = None  # type: ignore[assignment]

#: Numbers in one observation or action: 16 MB.
MOST_NUMBERS = 1 << 22
#: Whole numbers are exact in float32 up to here.
MOST_WHOLE = 1 << 24
#: Spaces in spaces.
MOST_DEPTH = 16

Json = Dict[str, Any]
#: Writes a value into so many numbers.
Writer = Callable[[Any, Any], None]
#: The value that the numbers mean.
Reader = Callable[[Any], Any]


class SpaceError(ValueError):
    """A space that Keel cannot take, or a value that is not one of its space."""


class Observations(NamedTuple):
    space: Json
    size: int
    write: Writer


class Actions(NamedTuple):
    space: Json
    size: int
    read: Reader


def kind_of(space: Any) -> str:
    """The name of the space's class, or of the nearest of its parents that is known here."""
    for parent in type(space).__mro__:
        if parent.__name__ in ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Tuple", "Dict"):
            return parent.__name__
    raise SpaceError(
        f"{type(space).__name__} is no space that Keel takes: use Box, Discrete, MultiDiscrete, MultiBinary, Tuple or Dict"
    )


def observations(space: Any) -> Observations:
    return _checked(_observations(space, "observation", 0), "observation_space")


def actions(space: Any) -> Actions:
    return _checked(_actions(space, "action", 0), "action_space")


def _checked(made: Any, what: str) -> Any:
    if made.size > MOST_NUMBERS:
        raise SpaceError(f"{what} has {made.size} numbers, at most {MOST_NUMBERS} go to a network: make it smaller")
    if made.size == 0:
        raise SpaceError(f"{what} has no numbers")
    return made


# ---- shapes and limits


def _whole(value: Any, what: str) -> int:
    number = int(value)
    if number != value or number < 0:
        raise SpaceError(f"{what} is {value!r}, not a whole number")
    return number


def _shape(space: Any, where: str) -> Tuple[int, ...]:
    shape = tuple(_whole(size, f"the shape of {where}") for size in space.shape)
    if math.prod(shape) > MOST_NUMBERS:
        raise SpaceError(f"{where} has {math.prod(shape)} numbers, at most {MOST_NUMBERS} go to a network: make it smaller")
    return shape


def _flat(value: Any, size: int, where: str) -> List[float]:
    """So many numbers from an array, nested lists or one number for all."""
    if np is not None:
        found = np.asarray(value, dtype="float64").reshape(-1).tolist()
    else:
        found = [float(one) for one in _leaves(value)]
    if len(found) == 1:
        return found * size
    if len(found) != size:
        raise SpaceError(f"{where} has {len(found)} numbers, its shape {size}")
    return found


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        return [value]
    return [leaf for part in value for leaf in _leaves(part)]


def _number(value: float) -> Any:
    """A limit as JSON can hold it."""
    if math.isnan(value):
        return "nan"
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _limits(values: Sequence[float]) -> Any:
    """One for all where all are alike: an image has tens of thousands."""
    return _number(values[0]) if values and all(v == values[0] for v in values) else [_number(v) for v in values]


_NAMES = {"b": "int32", "i": "int32", "u": "int32", "f": "float32"}


def _dtype_kind(space: Any, where: str) -> str:
    name = str(getattr(space.dtype, "name", space.dtype))
    kind = "b" if name.startswith("bool") else name[:1]
    if kind not in _NAMES:
        raise SpaceError(f"{where} has the dtype {name}: use float32, or whole numbers")
    return "u8" if name == "uint8" else kind


def _box(space: Any, where: str) -> Tuple[Json, Tuple[int, ...], List[float], List[float], str]:
    shape = _shape(space, where)
    size = math.prod(shape)
    low, high = (_flat(getattr(space, name), size, f"{name} of {where}") for name in ("low", "high"))
    kind = _dtype_kind(space, where)
    whole = kind != "f" and all(abs(v) <= MOST_WHOLE for v in (*low, *high))
    dtype = "uint8" if kind == "u8" else "int32" if whole else "float32"
    return (
        {"kind": "box", "shape": list(shape), "dtype": dtype, "low": _limits(low), "high": _limits(high)},
        shape,
        low,
        high,
        kind,
    )


def _discrete(space: Any, where: str) -> Tuple[int, int]:
    n = _whole(space.n, f"n of {where}")
    if not 1 <= n <= MOST_NUMBERS:
        raise SpaceError(f"{where} has {n} choices: use 1 to {MOST_NUMBERS}")
    return n, int(getattr(space, "start", 0))


def _multi_discrete(space: Any, where: str) -> Tuple[List[int], List[int], Tuple[int, ...]]:
    shape = tuple(getattr(space.nvec, "shape", (len(space.nvec),)))
    counts = [_whole(n, f"nvec of {where}") for n in _leaves(space.nvec)]
    start = getattr(space, "start", None)
    starts = [0] * len(counts) if start is None else [int(v) for v in _leaves(start)]
    if len(starts) != len(counts) or not counts or min(counts) < 1:
        raise SpaceError(f"{where}: nvec {counts} and start {starts} do not go together")
    return counts, starts, shape


def _multi_binary(space: Any) -> Tuple[int, Tuple[int, ...]]:
    shape = tuple(int(n) for n in space.n) if hasattr(space.n, "__iter__") else (int(space.n),)
    return math.prod(shape), shape


def _parts(space: Any, kind: str, where: str, depth: int) -> List[Tuple[Any, str, Any]]:
    """Key, name and space of each part. Names are made such that Keel's logs and files can have them."""
    if depth >= MOST_DEPTH:
        raise SpaceError(f"{where} is nested deeper than {MOST_DEPTH}")
    if kind == "Tuple":
        return [(i, str(i), part) for i, part in enumerate(space.spaces)]
    named: List[Tuple[Any, str, Any]] = []
    taken: set[str] = set()
    for key, part in space.spaces.items():
        name = re.sub(r"[^A-Za-z0-9_-]", "_", str(key))
        if not re.match(r"[A-Za-z_]", name):
            name = f"_{name}"
        while name in taken:
            name += "_"
        taken.add(name)
        named.append((key, name, part))
    return named


def _composite(kind: str, parts: Sequence[Tuple[Any, str, Any]]) -> Json:
    if kind == "Tuple":
        return {"kind": "tuple", "spaces": [made.space for _, _, made in parts]}
    return {"kind": "dict", "spaces": {name: made.space for _, name, made in parts}}


# ---- observations


def _observations(space: Any, where: str, depth: int) -> Observations:
    kind = kind_of(space)
    if kind == "Box":
        described, shape, *_ = _box(space, where)
        return Observations(described, math.prod(shape), _array_writer(shape, where))
    if kind == "Discrete":
        n, start = _discrete(space, where)
        return Observations(_zero_to_one([n]), n, _one_hot_writer(n, start, where))
    if kind == "MultiDiscrete":
        counts, starts, _ = _multi_discrete(space, where)
        return Observations(_zero_to_one([sum(counts)]), sum(counts), _several_hot_writer(counts, starts, where))
    if kind == "MultiBinary":
        size, shape = _multi_binary(space)
        return Observations({"kind": "multiBinary", "n": size}, size, _array_writer(shape, where))
    parts = [
        (key, name, _observations(part, f"{where}[{key!r}]", depth + 1)) for key, name, part in _parts(space, kind, where, depth)
    ]
    size = sum(made.size for _, _, made in parts)
    return Observations(_composite(kind, parts), size, _composite_writer(kind, parts, where))


def _zero_to_one(shape: List[int]) -> Json:
    return {"kind": "box", "shape": shape, "dtype": "float32", "low": 0, "high": 1}


def _array_writer(shape: Tuple[int, ...], where: str) -> Writer:
    size = math.prod(shape)
    if np is None:

        def write_list(value: Any, out: Any) -> None:
            found = _leaves(value)
            if len(found) != size:
                raise SpaceError(f"{where} has {len(found)} numbers, its space {size}: return as many")
            for i, one in enumerate(found):
                out[i] = one

        return write_list

    flat = len(shape) == 1
    ndarray = np.ndarray

    def write(value: Any, out: Any) -> None:
        if type(value) is not ndarray:
            value = np.asarray(value)
        if value.shape != shape:
            raise SpaceError(f"{where} has the shape {value.shape}, its space {shape}: return it in that shape")
        if value.dtype.kind not in "fiub":
            raise SpaceError(f"{where} has the dtype {value.dtype}, which is no number: return numbers")
        out[:] = value if flat else value.reshape(-1)

    return write


def _one_hot(value: Any, n: int, start: int, out: Any, at: int, where: str) -> None:
    try:
        index = int(value) - start
        exact = index + start == value
    except (TypeError, ValueError):
        exact, index = False, -1
    if not exact or not 0 <= index < n:
        raise SpaceError(f"{where} is {value!r}, not a whole number in {start}..{start + n - 1}")
    out[at + index] = 1.0


def _clear(out: Any, size: int) -> None:
    if np is not None:
        out[:] = 0.0
    else:
        for i in range(size):
            out[i] = 0.0


def _one_hot_writer(n: int, start: int, where: str) -> Writer:
    def write(value: Any, out: Any) -> None:
        _clear(out, n)
        _one_hot(value, n, start, out, 0, where)

    return write


def _several_hot_writer(counts: List[int], starts: List[int], where: str) -> Writer:
    size = sum(counts)

    def write(value: Any, out: Any) -> None:
        found = _leaves(value)
        if len(found) != len(counts):
            raise SpaceError(f"{where} has {len(found)} numbers, its space {len(counts)}: return as many")
        _clear(out, size)
        at = 0
        for i, n in enumerate(counts):
            _one_hot(found[i], n, starts[i], out, at, f"{where}[{i}]")
            at += n

    return write


def _composite_writer(kind: str, parts: Sequence[Tuple[Any, str, Observations]], where: str) -> Writer:
    spans: List[Tuple[Any, int, int, Writer]] = []
    at = 0
    for key, _, made in parts:
        spans.append((key, at, at + made.size, made.write))
        at += made.size
    wanted = len(spans)

    def write(value: Any, out: Any) -> None:
        if kind == "Dict":
            missing = [key for key, *_ in spans if not hasattr(value, "keys") or key not in value]
            if missing:
                raise SpaceError(f"{where} has no {missing[0]!r}, which its space has: return all parts")
        elif not isinstance(value, (tuple, list)) or len(value) != wanted:
            raise SpaceError(f"{where} is a {type(value).__name__}, its space a tuple of {wanted}: return one")
        for key, first, end, write_part in spans:
            write_part(value[key], out[first:end])

    return write


# ---- actions


def _actions(space: Any, where: str, depth: int) -> Actions:
    kind = kind_of(space)
    if kind == "Box":
        described, shape, low, high, dtype = _box(space, where)
        return Actions(described, math.prod(shape), _array_reader(space, shape, low, high, dtype))
    if kind == "Discrete":
        n, start = _discrete(space, where)
        return Actions({"kind": "discrete", "n": n}, 1, _discrete_reader(start))
    if kind == "MultiDiscrete":
        counts, starts, shape = _multi_discrete(space, where)
        dtype_name = str(getattr(getattr(space, "dtype", None), "name", "int64"))
        return Actions(
            {"kind": "multiDiscrete", "counts": counts}, len(counts), _whole_reader(shape, starts, dtype_name)
        )
    if kind == "MultiBinary":
        size, shape = _multi_binary(space)
        return Actions({"kind": "multiBinary", "n": size}, size, _whole_reader(shape, [0] * size, "int8"))
    parts = [(key, name, _actions(part, f"{where}[{key!r}]", depth + 1)) for key, name, part in _parts(space, kind, where, depth)]
    size = sum(made.size for _, _, made in parts)
    return Actions(_composite(kind, parts), size, _composite_reader(kind, parts))


def _nested(flat: List[Any], shape: Sequence[int]) -> Any:
    if len(shape) == 0:
        return flat[0]
    if len(shape) == 1:
        return list(flat)
    step = len(flat) // shape[0]
    return [_nested(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def _array_reader(
    space: Any, shape: Tuple[int, ...], low: List[float], high: List[float], kind: str
) -> Reader:
    if np is None:
        return lambda row: _nested([round(v) if kind != "f" else v for v in row], shape)
    dtype = np.dtype(str(getattr(space.dtype, "name", space.dtype)))
    if kind != "f":
        return lambda row: np.rint(row).astype(dtype).reshape(shape)
    lows, highs = (np.array(limit, dtype=dtype).reshape(shape) for limit in (low, high))
    # A limit such as 0.1 is no float32: the nearest one may lie outside, which an environment that checks would refuse.
    with np.errstate(over="ignore"):
        outside = np.any(lows.astype("float32") < lows) or np.any(highs.astype("float32") > highs)
    if outside:
        return lambda row: np.clip(row.astype(dtype).reshape(shape), lows, highs)
    if shape == (len(low),):
        # The rows of a frame are a copy of it already.
        return (lambda row: row) if dtype == np.float32 else lambda row: row.astype(dtype)
    return lambda row: row.astype(dtype).reshape(shape)


def _discrete_reader(start: int) -> Reader:
    if np is None:
        return lambda row: int(row[0]) + start
    int64 = np.int64
    return lambda row: int64(int(row[0]) + start)


def _whole_reader(shape: Sequence[int], starts: List[int], dtype_name: str) -> Reader:
    if np is None:
        return lambda row: _nested([int(v) + s for v, s in zip(row, starts)], shape)
    offsets = np.array(starts, dtype=dtype_name)
    return lambda row: (row.astype(dtype_name) + offsets).reshape(shape)


def _composite_reader(kind: str, parts: Sequence[Tuple[Any, str, Actions]]) -> Reader:
    spans: List[Tuple[Any, int, int, Reader]] = []
    at = 0
    for key, _, made in parts:
        spans.append((key, at, at + made.size, made.read))
        at += made.size
    if kind == "Tuple":
        return lambda row: tuple(read(row[first:end]) for _, first, end, read in spans)
    return lambda row: {key: read(row[first:end]) for key, first, end, read in spans}
