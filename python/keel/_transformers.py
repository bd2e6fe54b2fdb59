"""The callback of transformers' Trainer, which TRL's trainers are."""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional

import transformers

from keel._inbox import positive
from keel._names import TRL, number_of, reward_part
from keel._run import Run, checked

# What a Trainer logs once, when all is over: no row of an iteration.
_SUMMARY = ("train_runtime", "train_loss", "total_flos")
_STEPS = ("epoch", "step", "num_tokens")
# TRL logs a mean and a spread of each part of the reward.
_SPREAD = re.compile(r"rewards/.*/std\Z")


class Callback(transformers.TrainerCallback):
    """Writes Keel's log of a training of transformers or TRL; the page can change its learning rate, pause and stop it."""

    def __init__(self, **options: Any) -> None:
        self._options = checked(**options)
        self._optimizer: Any = None
        self._scheduler: Any = None
        self._rate: Optional[float] = None
        self._held: "dict[str, Any]" = {}
        self._held_step = 0
        self.run: Optional[Run] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not getattr(state, "is_world_process_zero", True):
            return
        self._rate = number_of(getattr(args, "learning_rate", None))
        self._optimizer, self._scheduler = kwargs.get("optimizer"), kwargs.get("lr_scheduler")
        settings = {ours: getattr(args, theirs) for ours, theirs in _SETTINGS.items() if hasattr(args, theirs)}
        model = kwargs.get("model")
        called = getattr(getattr(model, "config", None), "_name_or_path", None) or type(model).__name__
        self.run = Run(
            **{"name": getattr(args, "run_name", None) or called or "transformers", **self._options},
            algorithm=f"trl-{type(args).__name__.replace('Config', '').replace('Arguments', '').lower()}",
            config={**settings, "model": called, "steps": getattr(state, "max_steps", None)},
            seed=getattr(args, "seed", 0),
            versions={"transformers": getattr(transformers, "__version__", "unknown")},
            controls={"learningRate": positive("learningRate", self._set_rate)},
            names=TRL,
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        self._optimizer = kwargs.get("optimizer", self._optimizer)
        self._scheduler = kwargs.get("lr_scheduler", self._scheduler)
        if self.run is not None and self.run.poll() is not None:
            control.should_training_stop = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: "Optional[Mapping[str, Any]]" = None, **kwargs: Any) -> None:
        """A row of training is what was logged after a step; what evaluations logged at a step is one row."""
        if self.run is None or not logs or any(name in logs for name in _SUMMARY):
            return
        step = int(state.global_step)
        if self._held and step != self._held_step:
            self._flush()
        self._held_step = step
        evaluation = all(str(name).startswith("eval") or name in _STEPS for name in logs)
        self._held.update({name: value for name, value in logs.items() if name not in _STEPS})
        if not evaluation:
            self._flush()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.run is not None:
            self._flush()
            self.run.close()

    def _flush(self) -> None:
        if self.run is not None and self._held:
            row = {
                reward_part(name) if name.startswith("rewards/") else name: value
                for name, value in self._held.items()
                if number_of(value) is not None and not _SPREAD.match(name)
            }
            # Since TRL counts groups without spread, its reward_std is that of the whole batch.
            if "frac_reward_zero_std" in row and "reward_std" in row:
                row["reward/std"] = row.pop("reward_std")
            self.run.write(self._held_step, row)
        self._held = {}

    def _set_rate(self, value: float) -> str:
        optimizer = self._optimizer
        if optimizer is None or not self._rate:
            raise ValueError("learningRate cannot be changed before the first step")
        scheduler = getattr(self._scheduler, "scheduler", self._scheduler)
        factor = value / self._rate
        if scheduler is not None:
            if not hasattr(scheduler, "base_lrs"):
                raise ValueError(f"learningRate follows a {type(scheduler).__name__}, which does not say what it begins with")
            scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]
        for group in optimizer.param_groups:
            group["lr"] *= factor
        if hasattr(scheduler, "_last_lr"):
            scheduler._last_lr = [group["lr"] for group in optimizer.param_groups]  # what Trainer logs as the rate
        self._rate = value
        return "its schedule goes on from there"


_SETTINGS = {
    "learningRate": "learning_rate",
    "learningRateSchedule": "lr_scheduler_type",
    "epochs": "num_iterations",
    "clipLow": "epsilon",
    "gradientClip": "max_grad_norm",
    "klRefCoef": "beta",
    "groupSize": "num_generations",
    "temperature": "temperature",
    "maxNewTokens": "max_completion_length",
}
