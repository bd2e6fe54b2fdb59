"""What other trainers call things, and the exact names of Keel's registry (src/metrics/registry.ts) for them. A KL is named with its pair and its estimator."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Tuple, Union

Name = Union[str, Tuple[str, float]]

# Stable-Baselines3 and sb3-contrib. Two names are not here: the means over the last 100 episodes are not those of an iteration, which the callback has itself.
SB3: "Mapping[str, Name]" = {
    "train/approx_kl": "kl/step_k3",
    "train/entropy_loss": ("policy/entropy", -1.0),
    "train/std": "policy/std",
    "train/value_loss": "loss/value",
    "train/explained_variance": "value/explained_variance",
    "train/policy_gradient_loss": "loss/policy",
    "train/policy_loss": "loss/policy",
    "train/loss": "loss/total",
    "train/clip_fraction": "policy/clip_fraction",
    "train/clip_range": "train/clip_range",
    "train/learning_rate": "train/lr",
    "train/grad_norm": "grad/norm",
    "eval/mean_reward": "eval/return",
    "eval/mean_ep_length": "eval/length",
    "eval/success_rate": "eval/success",
    "keel/kl_step": "kl/step",
    "keel/kl_step_raw": "kl/step_raw",
    "keel/guard_scale": "guard/scale",
    "keel/guard_backtracks": "guard/backtracks",
    "keel/guard_retries": "guard/retries",
    "keel/guard_rate": "guard/rate",
}

# transformers' Trainer and TRL's GRPO, PPO and RLOO trainers, by whole names.
TRL: "Mapping[str, Name]" = {
    "loss": "loss/total",
    "policy_loss": "loss/policy",
    "grad_norm": "grad/norm",
    "learning_rate": "train/lr",
    "lr": "train/lr",
    "kl": "kl/ref_k3",
    "reward": "reward/mean",
    "reward_std": "reward/group_std",
    "frac_reward_zero_std": "reward/zero_std_groups",
    "completions/mean_length": "completion/length",
    "completion_length": "completion/length",
    "completions/min_length": "completion/length_min",
    "completions/max_length": "completion/length_max",
    "completions/clipped_ratio": "completion/truncated",
    "clip_ratio": "policy/clip_fraction",
    "clip_ratio/region_mean": "policy/clip_fraction",
    "clip_ratio/low_mean": "policy/clip_fraction_low",
    "clip_ratio/high_mean": "policy/clip_fraction_high",
    "entropy": "policy/entropy",
    "sampling/sampling_logp_difference/mean": "sampler/logp_diff",
    "sampling/sampling_logp_difference/max": "sampler/logp_diff_max",
    "sampling/importance_sampling_ratio/mean": "sampler/ratio_mean",
    "sampling/importance_sampling_ratio/min": "sampler/ratio_min",
    "sampling/importance_sampling_ratio/max": "sampler/ratio_max",
    # TRL's PPO: its approxkl is half the mean square of the log ratio of the update.
    "policy/approxkl_avg": "kl/step_k2",
    "policy/clipfrac_avg": "policy/clip_fraction",
    "policy/entropy_avg": "policy/entropy",
    "loss/policy_avg": "loss/policy",
    "loss/value_avg": "loss/value",
    "objective/scores": "reward/mean",
    "objective/rlhf_reward": "reward/penalised",
    "val/ratio": "policy/ratio_mean",
    "eval_reward": "eval/return",
}

# CleanRL's scripts, for loops of one's own.
CLEANRL: "Mapping[str, Name]" = {
    "charts/episodic_return": "episode/return",
    "charts/episodic_length": "episode/length",
    "charts/learning_rate": "train/lr",
    "charts/SPS": "time/steps_per_second",
    "losses/value_loss": "loss/value",
    "losses/policy_loss": "loss/policy",
    "losses/entropy": "policy/entropy",
    "losses/old_approx_kl": "kl/step_k1",
    "losses/approx_kl": "kl/step_k3",
    "losses/clipfrac": "policy/clip_fraction",
    "losses/explained_variance": "value/explained_variance",
}

_WELL_FORMED = re.compile(r"[a-z][a-z0-9_]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+\Z")
_LONGEST = 120
# Written by the log itself.
OWN = ("train/iteration", "train/step", "time/unix_s", "time/elapsed_s")


def namer(*maps: "Mapping[str, Name]") -> "Callable[[str], Tuple[str, float]]":
    """Gives the name in the log, and what its value is multiplied with. What no map knows is kept under its own name."""
    known: "dict[str, Tuple[str, float]]" = {}
    for names in maps:
        for theirs, ours in names.items():
            known[theirs] = (ours, 1.0) if isinstance(ours, str) else ours

    def name_of(theirs: str) -> "Tuple[str, float]":
        found = known.get(theirs)
        if found is None:
            found = known[theirs] = (own_name(theirs), 1.0)
        return found

    return name_of


def own_name(theirs: str) -> str:
    """Their name as the log can hold it: `Loss` becomes `own/Loss`."""
    if len(theirs) <= _LONGEST and _WELL_FORMED.match(theirs):
        return theirs
    return "/".join(["own", *(_as_part(part) for part in theirs.split("/"))])[:_LONGEST].rstrip("/")


def reward_part(theirs: str) -> str:
    """`rewards/format/mean` of TRL is the part of the reward that is called so."""
    return f"reward/part/{_as_part(re.sub('/mean$', '', theirs[len('rewards/') :]))}"[:_LONGEST]


def _as_part(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip(".-") or "_"


def number_of(value: Any) -> "float | None":
    """A number of Python's, of NumPy's or of torch's, of one element; None of anything else."""
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, (str, bytes)) or value is None:
        return None
    item = getattr(value, "item", None)
    if item is None:
        return None
    try:
        plain = item()
        return float(plain) if isinstance(plain, (int, float)) else None
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None  # more than one element, complex …
