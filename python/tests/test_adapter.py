import os
import random
import tempfile
import textwrap
import unittest

from keel import _plain
from keel._adapter import Hosted, Missing, WrongEnvironment

try:
    import numpy as np
except ImportError:
    np = None

SOURCE = """
    from keel import spaces

    class New:
        observation_space, action_space = spaces.Box(0, 1, (1,)), spaces.Discrete(2)
        def reset(self, *, seed=None, options=None):
            self.seeded = seed
            return [0.0], {"a": 1}
        def step(self, action):
            return [1.0], 2, True, False, {"n": {"m": 3}, "flag": True, "text": "no"}

    class Old(New):
        def seed(self, seed=None):
            self.seeded = seed
        def reset(self):
            return [0.0]
        def step(self, action):
            return [1.0], 2, True, {"TimeLimit.truncated": True}

    class Unseeded(New):
        def reset(self):
            return [0.0], {}

    class Autoreset:
        def __init__(self):
            self.env = New()
            self.observation_space, self.action_space = New.observation_space, New.action_space
        def reset(self, **more): return self.env.reset(**more)
        def step(self, action): return self.env.step(action)

    class Halfway:
        def reset(self): ...
        def step(self, action): ...

    class Needs:
        def __init__(self): import cv2_is_not_here
"""


class Adapter(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, f"made_{random.randrange(10**9)}.py")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(SOURCE))

    def host(self, name, **more):
        return Hosted({"file": self.file, "name": name, **more})

    def test_seeds_reach_every_version_of_the_api(self):
        for name, seeding in (("New", "argument"), ("Old", "method")):
            host = self.host(name)
            self.assertEqual(host.describe()["seeding"], seeding)
            self.assertEqual(host.reset(7), [0.0])
            self.assertEqual(host.env.seeded, 7)
        self.assertEqual(self.host("Unseeded").describe()["seeding"], "none")
        self.assertEqual(self.host("Unseeded").reset(7), [0.0])

    def test_flags_of_both_apis(self):
        self.assertEqual(self.host("New").step([0])[1:4], (2.0, True, False))
        self.assertEqual(self.host("Old").step([0])[1:4], (2.0, False, True))

    def test_numbers_of_info_are_found_by_name(self):
        host = self.host("New", info=["n.m", "flag", "text", "nothing"])
        out = [0.0] * 4
        host.measure(host.step([0])[4], out, 0)
        self.assertEqual(out[:2], [3.0, 1.0])
        self.assertTrue(all(value != value for value in out[2:]))

    def test_what_is_no_environment_is_named(self):
        for name, text in (("Autoreset", "leave it out"), ("Halfway", "no observation_space"), ("Nope", "it has New, Old")):
            with self.assertRaisesRegex(WrongEnvironment, text):
                self.host(name)

    def test_a_missing_package_is_named(self):
        with self.assertRaises(Missing) as caught:
            self.host("Needs")
        self.assertEqual(caught.exception.package, "cv2_is_not_here")


class States(unittest.TestCase):
    def test_plain_data_comes_back_as_it_was(self):
        value = {
            "a": [1, 2.5, None, True, "x"],
            "t": (1, (2, 3)),
            "b": b"\x00\xff",
            7: "a key that is no text",
            "big": 2**100,
            "random": random.Random(3).getstate(),
        }
        self.assertEqual(_plain.loads(_plain.dumps(value)), value)

    def test_floats_keep_their_bits(self):
        for value in (0.1, -0.0, 1e-320, float("inf")):
            self.assertEqual(repr(_plain.loads(_plain.dumps(value))), repr(value))

    @unittest.skipIf(np is None, "needs NumPy")
    def test_arrays_and_generators_come_back(self):
        array = np.arange(6, dtype="int16").reshape(2, 3)
        back = _plain.loads(_plain.dumps({"x": array, "one": np.float32(0.1)}))
        self.assertTrue(np.array_equal(back["x"], array) and back["x"].dtype == array.dtype)
        self.assertEqual(back["one"], np.float32(0.1))
        generator = np.random.default_rng(3)
        state = _plain.loads(_plain.dumps(generator.bit_generator.state))
        first = generator.random()
        generator.bit_generator.state = state
        self.assertEqual(generator.random(), first)

    def test_what_could_be_code_is_refused(self):
        for value in (object(), {1, 2}, print, [lambda: 0]):
            with self.assertRaises(TypeError):
                _plain.dumps(value)
        cycle = []
        cycle.append(cycle)
        with self.assertRaisesRegex(ValueError, "nested deeper"):
            _plain.dumps(cycle)
