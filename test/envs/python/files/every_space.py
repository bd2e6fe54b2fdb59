"""An environment for every kind of space, whose observations hang on all of what an action is; and each by hand.

`native` and `flat` are written for each case, apart from the package: what comes through the bridge is compared with them.
"""

import hashlib

import numpy as np

from keel import spaces


def _digest(action):
    """Of the value and of its types, so that a wrong dtype or shape shows."""
    if isinstance(action, dict):
        return "{" + ",".join(f"{key}:{_digest(one)}" for key, one in sorted(action.items())) + "}"
    if isinstance(action, tuple):
        return "(" + ",".join(_digest(one) for one in action) + ")"
    array = np.asarray(action)
    return f"{array.dtype.str}{array.shape}{array.tobytes().hex()}"


class Base:
    def __init__(self):
        self.observation_space = self.OBSERVATION
        self.action_space = self.ACTION
        self.t = 0

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = np.random.RandomState(seed)
        self.t = 0
        return self.see(self.random), {}

    def step(self, action):
        self.t += 1
        told = hashlib.sha256(_digest(action).encode()).digest()
        draw = np.random.RandomState(int.from_bytes(told[:4], "little") ^ self.random.randint(2**31))
        reward = float(draw.normal())
        return self.see(draw), reward, self.t % 17 == 0, self.t % 23 == 0, {}


def box(shape, dtype="float32", low=-5, high=5):
    return spaces.Box(low, high, shape, dtype)


class Float64(Base):
    OBSERVATION = box((2, 3), "float64", -1e9, 1e9)
    ACTION = box((2,), "float64", -0.1, 0.1)

    def see(self, draw):
        return draw.normal(size=(2, 3)) * 1000

    def native(self, row):
        return np.clip(row.astype("float64"), -0.1, 0.1)

    def flat(self, seen):
        return seen.reshape(-1).astype("float32")


class Whole(Base):
    OBSERVATION = box((4, 2), "uint8", 0, 255)
    ACTION = box((3,), "int16", -4, 4)

    def see(self, draw):
        return draw.randint(0, 256, size=(4, 2)).astype("uint8")

    def native(self, row):
        return np.array([int(v) for v in row], dtype="int16")

    def flat(self, seen):
        return np.array([float(v) for v in seen.reshape(-1)], dtype="float32")


class Started(Base):
    OBSERVATION = spaces.Discrete(5, -2)
    ACTION = spaces.Discrete(3, 7)

    def see(self, draw):
        return np.int64(draw.randint(-2, 3))

    def native(self, row):
        return np.int64(7 + int(row[0]))

    def flat(self, seen):
        return np.array([1.0 if seen + 2 == i else 0.0 for i in range(5)], dtype="float32")


class Several(Base):
    OBSERVATION = spaces.MultiDiscrete([3, 2, 4])
    ACTION = spaces.MultiDiscrete([4, 3], [1, -1])

    def see(self, draw):
        return np.array([draw.randint(n) for n in (3, 2, 4)])

    def native(self, row):
        return np.array([int(row[0]) + 1, int(row[1]) - 1], dtype="int64")

    def flat(self, seen):
        return np.concatenate([np.eye(n, dtype="float32")[v] for n, v in zip((3, 2, 4), seen)])


class Switches(Base):
    OBSERVATION = spaces.MultiBinary(6)
    ACTION = spaces.MultiBinary(3)

    def see(self, draw):
        return draw.randint(0, 2, size=6).astype("int8")

    def native(self, row):
        return np.array([int(v) for v in row], dtype="int8")

    def flat(self, seen):
        return np.array([float(v) for v in seen], dtype="float32")


class Nested(Base):
    OBSERVATION = spaces.Dict(
        {
            "b: camera": box((2, 2), "uint8", 0, 255),
            "a": spaces.Tuple([spaces.Discrete(2), spaces.Dict({"x": box((2,)), "1": spaces.MultiBinary(2)})]),
        }
    )
    ACTION = spaces.Dict({"move": box((2,), "float32", -1, 1), "task": spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)])})

    def see(self, draw):
        return {
            "a": (int(draw.randint(2)), {"1": draw.randint(0, 2, size=2), "x": draw.normal(size=2).astype("float32")}),
            "b: camera": draw.randint(0, 256, size=(2, 2)).astype("uint8"),
        }

    def native(self, row):
        return {"move": np.array(row[:2], dtype="float32"), "task": (np.int64(int(row[2])), np.int64(int(row[3])))}

    def flat(self, seen):
        first, second = seen["a"]
        parts = [seen["b: camera"].reshape(-1), [first == 0, first == 1], second["x"], second["1"]]
        return np.concatenate([np.asarray(part, dtype="float32") for part in parts])


class Pair(Base):
    """Whose observations look like what reset gives."""

    OBSERVATION = spaces.Tuple([box((1,)), spaces.Dict({"x": box((1,))})])
    ACTION = spaces.Tuple([spaces.Discrete(2), box((1,), "float64", -1, 1)])

    def see(self, draw):
        return (draw.normal(size=1), {"x": draw.normal(size=1)})

    def native(self, row):
        return (np.int64(int(row[0])), np.array([float(row[1])], dtype="float64"))

    def flat(self, seen):
        return np.array([seen[0][0], seen[1]["x"][0]], dtype="float32")


class OneNumber(Base):
    OBSERVATION = box((), "float32", -9, 9)
    ACTION = box((), "float32", -1, 1)

    def see(self, draw):
        return np.float32(draw.uniform(-9, 9))

    def native(self, row):
        return np.array(row[0], dtype="float32")

    def flat(self, seen):
        return np.array([seen], dtype="float32")


CASES = [Float64, Whole, Started, Several, Switches, Nested, Pair, OneNumber]
