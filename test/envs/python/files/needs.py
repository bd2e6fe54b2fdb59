"""Environments that cannot be made."""

import os

from keel import spaces


class Text(spaces.Space):
    pass


class Base:
    observation_space = spaces.Box(0, 1, (2,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return [0, 0], {}

    def step(self, action):
        return [0, 0], 0.0, False, False, {}


class Env(Base):
    def __init__(self):
        import no_such_package  # noqa: F401


class Wordy(Base):
    observation_space = Text()


class Vast(Base):
    observation_space = spaces.Box(0, 1, (10_000, 10_000))


class Dies(Base):
    def __init__(self):
        os._exit(9)
