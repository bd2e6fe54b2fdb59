"""Spaces for environments that want nothing but the standard library. Those of Gymnasium and gym are taken as they are."""

from __future__ import annotations

from typing import Mapping, Sequence, Union

Number = Union[int, float]


class Space:
    """What an observation or an action may be."""


class Box(Space):
    """Numbers between limits, in a shape; `dtype` is the name of a number type of NumPy."""

    def __init__(
        self,
        low: Union[Number, Sequence[Number]],
        high: Union[Number, Sequence[Number]],
        shape: Sequence[int] = (),
        dtype: str = "float32",
    ) -> None:
        self.low = low
        self.high = high
        self.shape = tuple(shape)
        self.dtype = dtype


class Discrete(Space):
    """One of `n` whole numbers, the first of which is `start`."""

    def __init__(self, n: int, start: int = 0) -> None:
        self.n = n
        self.start = start


class MultiDiscrete(Space):
    """Several choices at once, each of its own number."""

    def __init__(self, nvec: Sequence[int], start: Union[Sequence[int], None] = None) -> None:
        self.nvec = list(nvec)
        self.start = [0] * len(self.nvec) if start is None else list(start)


class MultiBinary(Space):
    """`n` switches, each 0 or 1."""

    def __init__(self, n: int) -> None:
        self.n = n


class Tuple(Space):
    """Several spaces, in order."""

    def __init__(self, spaces: Sequence[Space]) -> None:
        self.spaces = tuple(spaces)


class Dict(Space):
    """Several spaces by name."""

    def __init__(self, spaces: Mapping[str, Space]) -> None:
        self.spaces = dict(spaces)
