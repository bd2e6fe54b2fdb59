"""A walk on a line, by the standard library alone; what it does wrong is asked for by name."""

import os
import random
import sys
import time

from keel import spaces


class Walker:
    """Gymnasium's API without Gymnasium."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, size=50, fault=None, at=5, render_mode=None):
        self.observation_space = spaces.Box(-10, 10, (3,))
        self.action_space = spaces.Discrete(2)
        self.size, self.fault, self.at = size, fault, at
        self.render_mode = render_mode
        self.random = random.Random(0)
        self.x, self.t = 0.0, 0

    def _seen(self):
        return [self.x, self.t / self.size, 0.5]

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = random.Random(seed)
        self.x, self.t = self.random.uniform(-1, 1), 0
        return self._seen(), {}

    def step(self, action):
        self.t += 1
        self.x += (0.1 if action == 1 else -0.1) + self.random.gauss(0, 0.01)
        if self.t == self.at and self.fault is not None:
            found = getattr(self, "_" + self.fault)()
            if found is not None:
                return found
        reward = 1 - abs(self.x)
        info = {"x": self.x, "place": {"t": self.t}}
        if self.t >= self.size:
            info["is_success"] = abs(self.x) < 1
        return self._seen(), reward, self.t >= self.size, False, info

    # ---- faults

    def _cut(self):
        """Of the old API, which says it in info."""

    def _throw(self):
        raise ValueError("the floor gave way\nand more")

    def _throw_in_a_package(self):
        import json

        json.loads("{")

    def _close_all(self):
        os.closerange(3, 60)

    def _exit(self):
        sys.exit(3)

    def _die(self):
        os._exit(7)

    def _slow(self):
        time.sleep(0.8)

    def _hang(self):
        time.sleep(1000)

    def _nan(self):
        return [float("nan"), 0, 0], 0.0, False, False, {}

    def _nan_reward(self):
        return self._seen(), float("nan"), False, False, {}

    def _shape(self):
        return [1.0, 2.0], 0.0, False, False, {}

    def _dtype(self):
        return ["a", "b", "c"], 0.0, False, False, {}

    def _huge(self):
        return [0.0] * 50_000_000, 0.0, False, False, {}

    def _triple(self):
        return self._seen(), 0.0, False

    def _flag(self):
        return self._seen(), 0.0, None, False, {}

    def _reward(self):
        return self._seen(), "much", False, False, {}

    def _prints(self):
        print("x" * 100_000)
        os.write(1, b"\x00\x01not a frame\n")

    def _writes_to_pipes(self):
        for fd in range(3, 40):
            try:
                os.write(fd, b"this is no frame at all")
            except OSError:
                pass

    def _forks(self):
        if os.fork() == 0:
            return None  # and comes back into Keel's loop
        return None

    def _forks_and_dies(self):
        if os.fork() == 0:
            time.sleep(1000)
        os._exit(7)

    def render(self):
        import numpy

        picture = numpy.zeros((24, 32, 3), dtype=numpy.uint8)
        picture[:, int(16 + self.x) % 32] = (255, 0, 0)
        return picture


class Remembers(Walker):
    """One that can give its state."""

    def get_state(self):
        return {"x": self.x, "t": self.t, "random": self.random.getstate()}

    def set_state(self, state):
        self.x, self.t = state["x"], state["t"]
        self.random.setstate(state["random"])


class Forgets(Walker):
    """Never twice the same."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=random.SystemRandom().randrange(2**31))


class Old(Walker):
    """The API before Gymnasium: seeds by a method, one flag."""

    def seed(self, seed=None):
        self.random = random.Random(seed)

    def reset(self):
        return super().reset()[0]

    def step(self, action):
        seen, reward, done, _, info = super().step(action)
        cut = self.t == self.at and self.fault == "cut"
        return seen, reward, done or cut, {**info, "TimeLimit.truncated": cut}


def make_small():
    return Walker(size=8)


nothing = 3


class TimeLimit:
    """As Gymnasium's wrapper has it."""

    def __init__(self, env, steps):
        self.env, self._max_episode_steps = env, steps
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, **more):
        self.elapsed = 0
        return self.env.reset(**more)

    def step(self, action):
        seen, reward, terminated, truncated, info = self.env.step(action)
        self.elapsed += 1
        return seen, reward, terminated, truncated or self.elapsed >= self._max_episode_steps, info


def limited():
    return TimeLimit(Walker(), 12)


class Blind(Walker):
    """Nothing to see."""

    metadata = {"render_modes": ["human"]}


class Torn(Walker):
    """Its pictures are none."""

    def render(self):
        return [[1, 2], [3, 4]]


class Wide(Walker):
    """Its observations are longer than what a pipe takes at once, and it takes its time."""

    def __init__(self, seconds=0.0):
        super().__init__()
        self.seconds = seconds
        self.observation_space = spaces.Box(-10, 10, (30_000,))

    def _seen(self):
        return [self.x + i % 7 for i in range(30_000)]

    def step(self, action):
        time.sleep(self.seconds)
        return super().step(action)


class Various(Walker):
    """No two in a process are alike."""

    made = 0

    def __init__(self, **more):
        super().__init__(**more)
        Various.made += 1
        self.observation_space = spaces.Box(-10, 10, (4 - Various.made,))


class Late(Walker):
    """Its episodes begin once somebody puts a file `go` into a directory, and says there that it waits."""

    def __init__(self, place):
        super().__init__()
        self.place = place

    def reset(self, *, seed=None, options=None):
        open(os.path.join(self.place, f"waits-{os.getpid()}"), "w").close()
        until = time.monotonic() + 20
        while not os.path.exists(os.path.join(self.place, "go")):
            if time.monotonic() > until:
                raise RuntimeError("nobody let it begin")
            time.sleep(0.01)
        return super().reset(seed=seed)
