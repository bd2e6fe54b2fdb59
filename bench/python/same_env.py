"""Gymnasium's classic environments, which can be put into a state of ours."""
import gymnasium
import numpy as np


class Stated:
    def __init__(self, name):
        self.env = gymnasium.make(name).unwrapped
        self.inner = self.env
        self.observation_space = self.inner.observation_space
        self.action_space = self.inner.action_space

    def reset(self, *, seed=None, options=None):
        return self.inner.reset(seed=seed)

    def step(self, action):
        return self.inner.step(action)

    def get_state(self):
        return [float(v) for v in self.inner.state]

    def set_state(self, state):
        self.inner.state = np.array(state, dtype="float64")


def cartpole():
    return Stated("CartPole-v1")


def pendulum():
    return Stated("Pendulum-v1")


def acrobot():
    return Stated("Acrobot-v1")
