"""Exact KL of what torch policies give: Gaussian, categorical, Bernoulli, and several of them at once. In double precision, without cancellation."""

from __future__ import annotations

import copy
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence

import torch
from torch import distributions as td

# As Keel reads them: a std of 2e-9 to 5e8.
_LOG_STD = (-20.0, 20.0)


# Changes of variables without parameters of their own, which leave KL as it was.
_FIXED = (td.TanhTransform, td.SigmoidTransform, td.ExpTransform)


class Head(NamedTuple):
    """The numbers of one distribution, copied: the parameters that made them change."""

    kind: str
    numbers: "tuple[torch.Tensor, ...]"
    itself: Optional["td.Distribution"] = None


Numbers = List[Head]


def numbers(distribution: Any) -> Numbers:
    """The heads of a distribution of torch's or of Stable-Baselines3's, or of several in a tuple, list or dict."""
    if isinstance(distribution, Mapping):
        return [head for name in sorted(distribution, key=str) for head in numbers(distribution[name])]
    if isinstance(distribution, (tuple, list)):
        return [head for part in distribution for head in numbers(part)]
    if isinstance(distribution, td.Distribution):
        return [_head(distribution)]
    inner = getattr(distribution, "distribution", None)  # of Stable-Baselines3
    if inner is not None:
        return numbers(inner)
    raise TypeError(
        f"a policy gave a {type(distribution).__name__}: it must give a torch.distributions one, or several in a tuple, list or dict; "
        "say how to get it with distribution=lambda observations: …"
    )


def kl(old: Numbers, new: Numbers) -> "torch.Tensor":
    """KL(old || new) of each row, added up over heads."""
    if [head.kind for head in old] != [head.kind for head in new]:
        raise TypeError(f"the policy gave {[head.kind for head in old]} before and {[head.kind for head in new]} now: its heads must stay")
    total = _rows(_of(old[0], new[0]))
    for before, now in zip(old[1:], new[1:]):
        total = total + _rows(_of(before, now))
    return total


def _of(old: Head, new: Head) -> "torch.Tensor":
    if old.itself is not None and new.itself is not None:
        return td.kl_divergence(old.itself, new.itself).double()
    return _KL[old.kind](old.numbers, new.numbers)


def _rows(values: "torch.Tensor") -> "torch.Tensor":
    if values.dim() == 0:
        raise ValueError("a distribution has no batch: observations need a first axis of rows")
    return values.reshape(values.shape[0], -1).sum(1)


def _head(distribution: "td.Distribution") -> Head:
    if isinstance(distribution, td.Independent):
        return _head(distribution.base_dist)
    if isinstance(distribution, td.Normal):
        mean, std = distribution.loc.detach().double(), distribution.scale.detach().double()
        return Head("gaussian", (mean.clone(), std.log().clamp(*_LOG_STD)))
    if isinstance(distribution, (td.Categorical, td.OneHotCategorical)):
        return Head("categorical", (torch.log_softmax(distribution.logits.detach().double(), -1),))
    if isinstance(distribution, td.Bernoulli):
        return Head("bernoulli", (distribution.logits.detach().double().clone(),))
    if isinstance(distribution, td.TransformedDistribution):
        moving = [type(transform).__name__ for transform in distribution.transforms if not isinstance(transform, _FIXED)]
        if moving:
            raise TypeError(f"no exact KL is known through {moving[0]}: give the distribution that it is applied to, with distribution=lambda observations: …")
        return _head(distribution.base_dist)
    if (type(distribution), type(distribution)) not in td.kl._KL_REGISTRY:
        raise TypeError(f"no exact KL is known of {type(distribution).__name__}: use Normal, Categorical, Bernoulli or several of them")
    return Head(type(distribution).__name__, (), copy.deepcopy(distribution))


def _gaussian(old: "Sequence[torch.Tensor]", new: "Sequence[torch.Tensor]") -> "torch.Tensor":
    (mean_old, log_std_old), (mean_new, log_std_new) = old, new
    z = (mean_old - mean_new) / log_std_new.exp()
    # Two squares in disguise: neither the widths' part nor the means' can be negative.
    return 0.5 * (_expm1_minus(2 * (log_std_old - log_std_new)) + z * z)


def _categorical(old: "Sequence[torch.Tensor]", new: "Sequence[torch.Tensor]") -> "torch.Tensor":
    return _bregman(old[0], new[0]).sum(-1)


def _bernoulli(old: "Sequence[torch.Tensor]", new: "Sequence[torch.Tensor]") -> "torch.Tensor":
    log = torch.nn.functional.logsigmoid
    return _bregman(log(old[0]), log(new[0])) + _bregman(log(-old[0]), log(-new[0]))


def _bregman(log_p: "torch.Tensor", log_q: "torch.Tensor") -> "torch.Tensor":
    """q - p + p log(p/q) of each outcome: never negative, and a tiny KL keeps its digits."""
    p, q = log_p.exp(), log_q.exp()
    d = log_q - log_p
    near = p * _expm1_minus(d.clamp(-1, 1))
    # A category that was ruled out before costs what it has now; 0 log 0 is 0.
    far = q - torch.where(p > 0, p + p * d, torch.zeros_like(p))
    return torch.where(d.abs() < 1, near, far)


def _expm1_minus(x: "torch.Tensor") -> "torch.Tensor":
    """e^x - 1 - x without cancellation."""
    series = x * x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320))))))
    return torch.where(x.abs() < 1 / 32, series, torch.expm1(x) - x)


_KL: "dict[str, Callable[..., torch.Tensor]]" = {"gaussian": _gaussian, "categorical": _categorical, "bernoulli": _bernoulli}
