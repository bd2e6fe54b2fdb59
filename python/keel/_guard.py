"""A hard bound on how far one update moves a torch policy: Keel's line search on the exact KL, for policies that Keel does not train.

After an update the mean exact KL(old || new) over the observations is measured. Beyond the bound the parameters go back along the line to the old
ones until it holds, at the worst all the way. The rule and its constants are those of Keel's own guard (src/kl/guard-search.ts).
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from keel._search import search

try:
    import torch
except ImportError as error:
    raise ImportError("keel.guard needs PyTorch: pip install torch") from error

from keel import _kl

__all__ = ["Guarded", "guard", "mean_kl", "snapshot"]

# Parts of a Stable-Baselines3 policy that the actions do not depend on.
_CRITIC = ("value_net.", "mlp_extractor.value_net.", "vf_features_extractor.")

Params = Union[Mapping[str, "torch.Tensor"], Sequence["torch.Tensor"]]


@dataclass(frozen=True)
class Guarded:
    """What the guard left of an update."""

    kl: float
    """The mean exact KL(old || new) that the policy has now, at most the bound."""
    kl_raw: float
    """The same before the guard looked."""
    scale: float
    """The share of the step that is left: 1 where the guard did nothing, 0 where it took all back."""
    backtracks: int
    """The looks that it took."""


def snapshot(policy: "torch.nn.Module") -> "dict[str, torch.Tensor]":
    """The parameters that a policy's actions depend on, copied: take it before an update, give it to `guard` after.

    Of a Stable-Baselines3 policy the critic is left out: the bound is on the policy, and the critic may keep what it learnt.
    """
    leave = _CRITIC if _is_sb3(policy) else ()
    return {
        name: parameter.detach().clone()
        for name, parameter in policy.named_parameters()
        if parameter.requires_grad and not name.startswith(leave)
    }


def guard(
    policy: "torch.nn.Module",
    old_params: Params,
    observations: Any,
    bound: float,
    *,
    distribution: Optional[Callable[[Any], Any]] = None,
    at_once: int = 4096,
) -> Guarded:
    """Takes back as much of an update as keeps its mean exact KL over `observations` within `bound`.

    `policy` has the new parameters, and keeps what may stand. `old_params` is what `snapshot` gave before the update, or the old values of
    `policy.parameters()` in their order. `distribution` gives the distribution of the actions for a batch of observations; without it, a
    Stable-Baselines3 policy is asked its own, and any other module is called. It may be a `torch.distributions` one or several in a tuple, list
    or dict (the KLs of hybrid actions add up). `observations` may be nested likewise; its first axis is the batch, looked at `at_once` rows at a time.
    Parameters that `old_params` does not name stay as they are, and are no part of what is measured.
    """
    if not (isinstance(bound, (int, float)) and bound >= 0 and math.isfinite(bound)):
        raise ValueError(f"bound is {bound!r}: must be a finite number from 0, such as 0.02 nats")
    update = _Update(policy, old_params, observations, distribution, at_once)
    with update.measured(end=0.0) as kl_at:  # an update that cannot be measured does not stand
        found = search(kl_at(1.0), float(bound), kl_at)
        update.put(found.scale)
    return Guarded(kl=found.kl, kl_raw=found.kl_raw, scale=found.scale, backtracks=found.backtracks)


def mean_kl(
    policy: "torch.nn.Module",
    old_params: Params,
    observations: Any,
    *,
    distribution: Optional[Callable[[Any], Any]] = None,
    at_once: int = 4096,
) -> float:
    """The mean exact KL(old || new) of an update, measured as `guard` does; the policy stays as it is."""
    update = _Update(policy, old_params, observations, distribution, at_once)
    with update.measured(end=1.0) as kl_at:
        return kl_at(1.0)


class _Update:
    """The line from the old parameters of a policy to its new ones."""

    def __init__(self, policy: "torch.nn.Module", old_params: Params, observations: Any, distribution: Optional[Callable[[Any], Any]], at_once: int) -> None:
        self._policy = policy
        self._pairs = _pairs(policy, old_params)
        self._new = [parameter.detach().clone() for parameter, _ in self._pairs]
        self._look = distribution if distribution is not None else _distribution_of(policy)
        self._parts = list(_batches(observations, at_once, self._pairs[0][0]))

    def put(self, share: float) -> None:
        """Gives the policy the parameters at this share of the way."""
        with torch.no_grad():
            for (parameter, old), new in zip(self._pairs, self._new):
                parameter.copy_(new if share == 1 else old if share == 0 else old + (new - old) * share)

    @contextmanager
    def measured(self, end: float) -> "Iterator[Callable[[float], float]]":
        """Gives the mean KL at a share; after an error the policy is at the share `end`."""
        with _measuring(self._policy):
            try:
                self.put(0.0)
                before = [_kl.numbers(self._look(part)) for part in self._parts]

                def kl_at(share: float) -> float:
                    self.put(share)
                    if not all(bool(torch.isfinite(parameter).all()) for parameter, _ in self._pairs):
                        return math.nan
                    return _mean(self._look, self._parts, before)

                yield kl_at
            except BaseException:
                self.put(end)
                raise


def _mean(look: Callable[[Any], Any], parts: Sequence[Any], before: "Sequence[_kl.Numbers]") -> float:
    total, rows = 0.0, 0
    for part, old in zip(parts, before):
        try:
            kl = _kl.kl(old, _kl.numbers(look(part)))
        except ValueError:
            # torch refuses to make a distribution of what is no number; the old parameters made one, so these are too far.
            return math.nan
        total += float(kl.sum())
        rows += kl.numel()
    return total / rows


def _pairs(policy: "torch.nn.Module", old_params: Params) -> "List[Tuple[torch.nn.Parameter, torch.Tensor]]":
    named = dict(policy.named_parameters())
    if isinstance(old_params, Mapping):
        # A whole state dict has buffers too, which an update by gradients does not move.
        known = policy.state_dict()
        for name in old_params:
            if name not in named and name not in known:
                raise ValueError(f"old_params has {name!r}, which the policy has not: take them with keel.snapshot(policy) before the update")
        pairs = [(named[name], value) for name, value in old_params.items() if name in named]
    else:
        values = list(old_params)
        if len(values) != len(named):
            raise ValueError(f"old_params has {len(values)} tensors and the policy {len(named)} parameters: take them with keel.snapshot(policy)")
        pairs = list(zip(named.values(), values))
    if not pairs:
        raise ValueError("old_params is empty: take it with keel.snapshot(policy) before the update")
    for parameter, old in pairs:
        if parameter.shape != old.shape:
            raise ValueError(f"old_params has a tensor of shape {tuple(old.shape)} for one of {tuple(parameter.shape)}: is it of this policy?")
        if old.data_ptr() == parameter.data_ptr():
            raise ValueError("old_params is the policy's own memory, which the update changed: copy it before with keel.snapshot(policy)")
    return [(parameter, old.detach().to(parameter)) for parameter, old in pairs]


def _is_sb3(policy: Any) -> bool:
    return hasattr(policy, "get_distribution") and hasattr(policy, "evaluate_actions")


def _distribution_of(policy: Any) -> Callable[[Any], Any]:
    return policy.get_distribution if _is_sb3(policy) else policy


def _batches(observations: Any, at_once: int, like: "torch.Tensor") -> Iterator[Any]:
    if at_once < 1:
        raise ValueError(f"at_once is {at_once}: must be at least 1")
    rows = {len(leaf) for leaf in _leaves(observations)}
    if len(rows) != 1 or 0 in rows:
        raise ValueError(f"observations have {sorted(rows)} rows: every part needs the same number, at least one")
    for start in range(0, rows.pop(), at_once):
        yield _cut(observations, slice(start, start + at_once), like)


def _leaves(value: Any) -> List[Any]:
    if isinstance(value, Mapping):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _cut(value: Any, rows: slice, like: "torch.Tensor") -> Any:
    if isinstance(value, Mapping):
        return {name: _cut(part, rows, like) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_cut(part, rows, like) for part in value)
    part = torch.as_tensor(value[rows], device=like.device)
    # NumPy's numbers are double by default; a tensor's type was chosen.
    return part if isinstance(value, torch.Tensor) or not part.is_floating_point() else part.to(like.dtype)


@contextmanager
def _measuring(policy: "torch.nn.Module") -> Iterator[None]:
    """Without gradients, and without dropout: two looks at the same parameters must agree."""
    modes = [(module, module.training) for module in policy.modules()]
    policy.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
