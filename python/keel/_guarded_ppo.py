"""Stable-Baselines3's PPO with Keel's guard on every update."""

from __future__ import annotations

from typing import Any

try:
    from stable_baselines3 import PPO
except ImportError as error:
    raise ImportError("keel.GuardedPPO needs Stable-Baselines3: pip install stable-baselines3") from error

from keel._guard import Guarded, guard, snapshot

__all__ = ["GuardedPPO"]


class GuardedPPO(PPO):
    """PPO whose updates stay within `bound`: the mean exact KL(old || new) over the rollout, in nats.

    `guarded` is what the guard left of the last update; the logger gets it as `keel/kl_step`, `keel/kl_step_raw`, `keel/guard_scale` and `keel/guard_backtracks`.
    """

    guarded: "Guarded | None" = None

    def __init__(self, *args: Any, bound: float = 0.05, **kwargs: Any) -> None:
        if not bound > 0:
            raise ValueError(f"bound is {bound!r}: must be above 0, such as 0.05 nats")
        self.bound = float(bound)
        super().__init__(*args, **kwargs)

    def train(self) -> None:
        old = snapshot(self.policy)
        super().train()
        self.guarded = guard(self.policy, old, self._observations(), self.bound)
        self.logger.record("keel/kl_step", self.guarded.kl)
        self.logger.record("keel/kl_step_raw", self.guarded.kl_raw)
        self.logger.record("keel/guard_scale", self.guarded.scale)
        self.logger.record("keel/guard_backtracks", self.guarded.backtracks)

    def _observations(self) -> Any:
        """Of the whole rollout, as rows: the buffer is flattened by the update, unless there was none."""
        buffer = self.rollout_buffer
        flat = buffer.generator_ready

        def rows(values: Any) -> Any:
            return values if flat else buffer.swap_and_flatten(values)

        observations = buffer.observations
        return {name: rows(values) for name, values in observations.items()} if isinstance(observations, dict) else rows(observations)

    def _excluded_save_params(self) -> "list[str]":
        return [*super()._excluded_save_params(), "guarded"]
