"""Stable-Baselines3's PPO with Keel's guard on every update."""

from __future__ import annotations

import copy
import math
from typing import Any, Callable, Iterable, Union

try:
    import torch
    from stable_baselines3 import PPO
except ImportError as error:
    raise ImportError("keel.GuardedPPO needs Stable-Baselines3: pip install stable-baselines3") from error

from keel import _guarded_rate as rates
from keel._guard import Guarded, guard, snapshot
from keel._rollout import rows_of

__all__ = ["GuardedPPO"]


class GuardedPPO(PPO):
    """PPO whose updates stay within `bound`: the mean exact KL(old || new) over the rollout, in nats.

    An update that left the bound lowers the learning rate for those to come; one that left it by far is done again from where it began, at the rate
    with which it would have fitted, at most `retries` times: its steps have thrown the critic and the optimiser's moments about as well, which no step
    back mends. What still leaves the bound goes back along the line. Calm updates win the rate back. `retries=0` only ever steps back.

    `guarded` is what the guard left of the last update and `rate_factor` what of the learning rate; the logger gets them as `keel/kl_step`,
    `keel/kl_step_raw`, `keel/guard_scale`, `keel/guard_backtracks`, `keel/guard_retries` and `keel/guard_rate`.
    """

    guarded: "Guarded | None" = None
    rate_factor: float = 1.0

    def __init__(self, *args: Any, bound: float = 0.05, retries: int = 3, **kwargs: Any) -> None:
        if not bound > 0:
            raise ValueError(f"bound is {bound!r}: must be above 0, such as 0.05 nats")
        if not (isinstance(retries, int) and retries >= 0):
            raise ValueError(f"retries is {retries!r}: must be a whole number from 0")
        self.bound = float(bound)
        self.retries = retries
        super().__init__(*args, **kwargs)

    def train(self) -> None:
        old, begin_again = snapshot(self.policy), self._remembered()
        found = self._attempt(old)
        kl_raw, tries = found.kl_raw, 0
        while self.retries > 0 and found.scale < 1:
            cut, before = rates.fitting_cut(found.kl_raw, self.bound), self.rate_factor
            self.rate_factor = rates.slower_factor(before, cut)
            if self.rate_factor == before or not rates.is_worth_another_attempt(cut) or tries == self.retries:
                break
            tries += 1
            begin_again()
            found = self._attempt(old)
        if math.isnan(found.kl_raw):  # nothing of it stands, of the critic neither
            begin_again()
            self._n_updates += self.n_epochs
        if self.retries > 0:
            self.rate_factor = rates.regained_factor(self.rate_factor, kl_raw, self.bound)
        self.guarded = Guarded(kl=found.kl, kl_raw=kl_raw, scale=found.scale, backtracks=found.backtracks)
        for name, value in (
            ("kl_step", found.kl),
            ("kl_step_raw", kl_raw),
            ("guard_scale", found.scale),
            ("guard_backtracks", found.backtracks),
            ("guard_retries", tries),
            ("guard_rate", self.rate_factor),
        ):
            self.logger.record(f"keel/{name}", value)

    def _attempt(self, old: "dict[str, torch.Tensor]") -> Guarded:
        """An update and what the guard leaves of it: nothing where it has led to what is no number."""
        failed: "ValueError | None" = None
        try:
            super().train()
        except ValueError as error:  # torch refuses a distribution of what is no number
            failed = error
        if not all(bool(torch.isfinite(value).all()) for value in self.policy.parameters()):
            return Guarded(kl=0.0, kl_raw=math.nan, scale=0.0, backtracks=0)
        if failed is not None:
            raise failed
        return guard(self.policy, old, rows_of(self.rollout_buffer), self.bound)

    def _remembered(self) -> Callable[[], None]:
        """Gives what takes all that an update changes back to what it is now."""
        policy, optimizer = copy.deepcopy(self.policy.state_dict()), copy.deepcopy(self.policy.optimizer.state_dict())
        updates = self._n_updates

        def begin_again() -> None:
            self.policy.load_state_dict(policy)
            self.policy.optimizer.load_state_dict(copy.deepcopy(optimizer))
            self._n_updates = updates

        return begin_again

    def _update_learning_rate(self, optimizers: "Union[Iterable[torch.optim.Optimizer], torch.optim.Optimizer]") -> None:
        super()._update_learning_rate(optimizers)
        if self.rate_factor == 1:
            return
        for optimizer in [optimizers] if isinstance(optimizers, torch.optim.Optimizer) else optimizers:
            for group in optimizer.param_groups:
                group["lr"] *= self.rate_factor
        self.logger.record("train/learning_rate", self.policy.optimizer.param_groups[0]["lr"])

    def _excluded_save_params(self) -> "list[str]":
        return [*super()._excluded_save_params(), "guarded"]
