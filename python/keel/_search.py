"""The guard's line search: the share of an update that keeps its KL within a bound. The rule of Keel's src/kl/guard-search.ts, number by number."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple

MAX_BACKTRACKS = 40
# The guess aims a little below the bound.
SHORT_OF_BOUND = 0.98
# What a step back leaves of what is too far: at least; at most the first time; at most from then on.
SHORTEST_STEP = 0.1
FIRST_STEP = 0.98
LATER_STEPS = 0.7
# The bound is held with these margins, so that it also holds for someone who sums in another order.
GUARD_MARGIN = 1e-4
GUARD_ROUNDING = 5e-8


class Found(NamedTuple):
    scale: float
    kl: float
    kl_raw: float
    backtracks: int


def search(kl_raw: float, bound: float, kl_at: Callable[[float], float]) -> Found:
    """Looks for the share of an update whose KL, which `kl_at` gives, is within `bound`."""
    limit = max(0.0, bound * (1 - GUARD_MARGIN) - GUARD_ROUNDING)
    if kl_raw <= limit:
        return Found(1.0, kl_raw, kl_raw, 0)
    scale, kl, too_far, kl_too_far = 0.0, 0.0, 1.0, kl_raw
    backtracks = 0
    while backtracks < MAX_BACKTRACKS:
        most = FIRST_STEP if backtracks == 0 else LATER_STEPS
        backtracks += 1
        # Near the old parameters KL grows with the square of the distance; what is no number takes the largest step back.
        if kl_too_far < 1e30:
            back = too_far * min(most, max(SHORTEST_STEP, SHORT_OF_BOUND * math.sqrt(limit / kl_too_far)))
        else:
            back = too_far * SHORTEST_STEP
        share = back if scale == 0 else (scale + too_far) / 2
        found = kl_at(share)
        if found <= limit:
            close_enough = found > limit / 2 or share > 0.9 * too_far
            scale, kl = share, found
            if close_enough:
                break
        else:
            too_far, kl_too_far = share, found
    return Found(scale, kl, kl_raw, backtracks)
