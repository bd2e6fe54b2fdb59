"""The rollout buffer of Stable-Baselines3."""

from __future__ import annotations

from typing import Any


def rows_of(buffer: Any) -> Any:
    """All observations of a rollout, as rows: the update flattens the buffer, unless there was none."""
    observations = buffer.observations
    if buffer.generator_ready:
        return observations
    flat = buffer.swap_and_flatten
    return {name: flat(part) for name, part in observations.items()} if isinstance(observations, dict) else flat(observations)
