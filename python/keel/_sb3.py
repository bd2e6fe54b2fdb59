"""Stable-Baselines3's callback. SB3 prints a row before its update; here a row is written after it, so that it tells of one iteration."""

from __future__ import annotations

from typing import Any, Mapping, Optional

import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback

from keel._inbox import positive
from keel._names import SB3, number_of
from keel._rollout import rows_of
from keel._run import Run, checked

# Off-policy trainers update after every few steps: a row each would be a row a step.
_LEAST_STEPS = 1000


class Callback(BaseCallback):
    """Writes Keel's log of a training of Stable-Baselines3; the page can change its learning rate, target KL and guard, pause and stop it."""

    def __init__(self, *, exact_kl: bool = True, verbose: int = 0, **options: Any) -> None:
        super().__init__(verbose)
        self._options = checked(**options)
        self._exact_kl = exact_kl
        self.run: Optional[Run] = None
        self._returns: "list[float]" = []
        self._lengths: "list[float]" = []
        self._successes: "list[float]" = []
        self._measured: "dict[str, float]" = {}
        self._old: Any = None
        self._seen: Any = None
        self._rollouts = 0
        self._updates = self._rollout_step = self._row_step = 0

    # ------------------------------------------------------------------------------------------------ SB3 calls these

    def _on_training_start(self) -> None:
        model = self.model
        self._updates = getattr(model, "_n_updates", 0)
        self._row_step = model.num_timesteps
        self._rollouts = 0
        settings = {ours: getattr(model, theirs) for ours, theirs in _SETTINGS.items() if hasattr(model, theirs)}
        rate = number_of(settings.get("learningRate"))
        if rate is None:
            settings["learningRate"] = number_of(model.lr_schedule(1.0))
            settings["learningRateSchedule"] = "a function"
        if callable(settings.get("clipRange")):
            settings["clipRange"] = number_of(settings["clipRange"](1.0))
        total = self.locals.get("total_timesteps")
        env = model.get_env()
        spec = getattr(env.envs[0], "spec", None) if hasattr(env, "envs") else None
        self.run = Run(
            **{"name": getattr(spec, "id", None) or type(model).__name__, **self._options},
            algorithm=f"sb3-{type(model).__name__.lower()}",
            config={**settings, "envs": model.n_envs, "steps": total, "policy": type(model.policy).__name__},
            seed=model.seed if isinstance(model.seed, int) else 0,
            versions={"stable-baselines3": stable_baselines3.__version__, "torch": torch.__version__},
            controls=self._controls(),
            names=SB3,
        )

    def _on_rollout_start(self) -> None:
        self._write()
        self._rollouts += 1

    def _on_step(self) -> bool:
        dones = self.locals.get("dones")
        if dones is not None and dones.any():
            for info in self.locals.get("infos", ()):
                episode = info.get("episode")
                if episode is not None:
                    self._returns.append(float(episode["r"]))
                    self._lengths.append(float(episode["l"]))
                    if "is_success" in info:
                        self._successes.append(float(info["is_success"]))
        return self.run is None or self.run.poll() is None

    def _on_rollout_end(self) -> None:
        # SB3 clears its logger before the update; what it has of train/* now is of the update before.
        self._measured = {key: value for key, value in self._logged().items() if not key.startswith(("train/", "keel/"))}
        self._rollout_step = self.model.num_timesteps
        self._old = self._seen = None
        if self._exact_kl and hasattr(self.model, "rollout_buffer") and not hasattr(self.model, "bound"):
            try:
                from keel._guard import snapshot

                self._old = snapshot(self.model.policy)
                # SB3 empties the buffer before the next rollout begins, which is when the row is written.
                self._seen = rows_of(self.model.rollout_buffer)
            except Exception as error:
                self._no_kl(error)

    def _on_training_end(self) -> None:
        self._write()
        if self.run is not None:
            self.run.close()

    # ------------------------------------------------------------------------------------------------ a row

    def _write(self) -> None:
        """The row of the update that was just done, if one was."""
        run, updates = self.run, getattr(self.model, "_n_updates", 0)
        if run is None or updates == self._updates or self._rollout_step == 0:
            return
        if not hasattr(self.model, "rollout_buffer") and self._rollout_step - self._row_step < _LEAST_STEPS:
            return
        row: "dict[str, Any]" = {**self._measured, **{key: value for key, value in self._logged().items() if key.startswith(("train/", "keel/"))}}
        for key in _NOT_OF_AN_ITERATION:
            row.pop(key, None)
        if hasattr(self.model, "n_epochs"):
            row["train/epochs_run"] = updates - self._updates
        if self._returns:
            row["episode/return"] = sum(self._returns) / len(self._returns)
            row["episode/length"] = sum(self._lengths) / len(self._lengths)
            row["episode/count"] = len(self._returns)
        if self._successes:
            row["episode/success"] = sum(self._successes) / len(self._successes)
        if self._old is not None:
            try:
                from keel._guard import mean_kl

                row["kl/step"] = mean_kl(self.model.policy, self._old, self._seen)
            except Exception as error:
                self._no_kl(error)
        run.write(self._rollout_step, row)
        self._updates, self._row_step = updates, self._rollout_step
        self._old = self._seen = None
        self._returns, self._lengths, self._successes = [], [], []

    def _logged(self) -> "Mapping[str, Any]":
        values = getattr(self.logger, "name_to_value", {})
        return {key: value for key, value in values.items() if number_of(value) is not None}

    def _no_kl(self, error: Exception) -> None:
        self._exact_kl = False
        self._old = self._seen = None
        if self.run is not None:
            self.run._warn("kl", f"the exact KL of an update cannot be measured, and is left out: {error}")

    # ------------------------------------------------------------------------------------------------ the page

    def _controls(self) -> "dict[str, Any]":
        model = self.model

        def rate(value: float) -> str:
            model.learning_rate = value
            model.lr_schedule = _constant(value)
            if hasattr(model, "rate_factor"):
                model.rate_factor = 1.0  # what was asked for is the rate
            return "at the next update; a schedule that it had is over"

        controls = {"learningRate": positive("learningRate", rate)}
        if hasattr(model, "target_kl"):

            def target(value: Optional[float]) -> None:
                if value is not None and not value > 0:
                    raise ValueError(f"targetKl is {value:g}: must be above 0, or null for none")
                model.target_kl = value

            controls["targetKl"] = target
        if hasattr(model, "bound"):
            controls["guard"] = positive("guard", lambda value: setattr(model, "bound", value))
        return controls


_SETTINGS = {
    "learningRate": "learning_rate",
    "epochs": "n_epochs",
    "minibatchSize": "batch_size",
    "stepsPerRollout": "n_steps",
    "gamma": "gamma",
    "gaeLambda": "gae_lambda",
    "clipRange": "clip_range",
    "entropyCoef": "ent_coef",
    "valueCoef": "vf_coef",
    "gradientClip": "max_grad_norm",
    "targetKl": "target_kl",
    "guard": "bound",
}

# Means over the last hundred episodes, and clocks of SB3's: the log has its own of the iteration.
_NOT_OF_AN_ITERATION = ("rollout/ep_rew_mean", "rollout/ep_len_mean", "rollout/success_rate", "time/fps", "time/iterations", "time/time_elapsed", "time/total_timesteps", "train/n_updates")


def _constant(value: float) -> Any:
    """A schedule of SB3's own, so that a model that is saved needs nothing of Keel."""
    from stable_baselines3.common import utils

    make = getattr(utils, "ConstantSchedule", None) or getattr(utils, "constant_fn", None) or utils.get_schedule_fn
    return make(value)
