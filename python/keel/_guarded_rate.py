"""What the guard tells the learning rate. The rule of Keel's src/kl/controllers/guarded-rate.ts, number by number, for updates that take all their steps."""

from __future__ import annotations

import math

SMALLEST_CUT = 0.1
FLOOR = 1e-4
MARGIN = 0.97
WORTH_ANOTHER_ATTEMPT = 0.7
REGAIN = 1.05
CALM = 0.3


def fitting_cut(kl: float, bound: float) -> float:
    """The factor on the learning rate with which an update that left `bound` would have fitted: a KL grows with the square of the rate."""
    if not kl < math.inf:
        return SMALLEST_CUT
    return min(MARGIN, max(SMALLEST_CUT, MARGIN * math.sqrt(bound / kl)))


def is_worth_another_attempt(cut: float) -> bool:
    """Whether an update that asks for this cut is done again, and not only stepped back."""
    return cut < WORTH_ANOTHER_ATTEMPT


def slower_factor(factor: float, cut: float) -> float:
    """The factor on the learning rate after a cut."""
    return max(FLOOR, factor * cut)


def regained_factor(factor: float, kl: float, bound: float) -> float:
    """The factor after an update: calm ones win it back."""
    return min(1.0, factor * REGAIN) if kl <= CALM * bound else factor
