import math
import struct
import unittest
from array import array
from unittest import mock

from keel import _flat, spaces

try:
    import numpy as np
except ImportError:
    np = None


def row(*numbers):
    return array("f", numbers) if np is None else np.array(numbers, dtype="float32")


def written(made, value):
    # As the server has it: parts of it are views.
    out = row(*[9.0] * made.size) if np is not None else memoryview(row(*[9.0] * made.size))
    made.write(value, out)
    return [float(v) for v in out]


class Spaces(unittest.TestCase):
    def test_categories_of_observations_are_one_number_each(self):
        made = _flat.observations(spaces.Discrete(3, 5))
        self.assertEqual(written(made, 6), [0, 1, 0])
        for wrong in (4, 8, 5.5, "a", None):
            with self.assertRaisesRegex(_flat.SpaceError, "not a whole number in 5..7"):
                written(made, wrong)

    def test_actions_begin_where_their_space_does(self):
        self.assertEqual(int(_flat.actions(spaces.Discrete(3, 5)).read(row(2))), 7)
        several = _flat.actions(spaces.MultiDiscrete([2, 3], [10, -1]))
        self.assertEqual([int(v) for v in several.read(row(1, 2))], [11, 1])

    def test_parts_keep_their_order_and_get_names_that_logs_can_have(self):
        made = _flat.observations(
            spaces.Dict({"b c": spaces.Discrete(2), "1": spaces.Box(0, 1, (1,)), "b_c": spaces.Tuple([spaces.MultiBinary(1)])})
        )
        self.assertEqual(list(made.space["spaces"]), ["b_c", "_1", "b_c_"])
        self.assertEqual(written(made, {"b_c": ([1],), "1": [0.5], "b c": 0}), [1, 0, 0.5, 1])

    def test_what_is_missing_or_of_another_size_is_named(self):
        made = _flat.observations(spaces.Dict({"x": spaces.Box(0, 1, (2,))}))
        with self.assertRaisesRegex(_flat.SpaceError, "has no 'x'"):
            written(made, {})
        with self.assertRaisesRegex(_flat.SpaceError, r"observation\['x'\] has"):
            written(made, {"x": [1.0]})

    def test_limits_are_one_where_all_are_alike(self):
        self.assertEqual(_flat.observations(spaces.Box(-math.inf, 3, (4,))).space["low"], "-inf")
        self.assertEqual(_flat.observations(spaces.Box([0, 1], [2, 2], (2,))).space["low"], [0, 1])

    def test_whole_numbers_beyond_float32_are_not_called_whole(self):
        self.assertEqual(_flat.observations(spaces.Box(0, 10, (1,), "int64")).space["dtype"], "int32")
        self.assertEqual(_flat.observations(spaces.Box(0, 2**40, (1,), "int64")).space["dtype"], "float32")

    def test_what_is_too_large_or_too_deep_is_refused_before_it_is_made(self):
        with self.assertRaisesRegex(_flat.SpaceError, "at most"):
            _flat.observations(spaces.Box(0, 1, (10**6, 10**6)))
        deep = spaces.Discrete(2)
        for _ in range(40):
            deep = spaces.Tuple([deep])
        with self.assertRaisesRegex(_flat.SpaceError, "nested deeper"):
            _flat.actions(deep)

    @unittest.skipIf(np is None, "needs NumPy")
    def test_an_action_stays_within_limits_that_are_no_float32(self):
        read = _flat.actions(spaces.Box(-0.1, 0.1, (1,), "float64")).read
        self.assertLessEqual(float(read(row(0.1))[0]), 0.1)
        self.assertGreater(struct.unpack("f", struct.pack("f", 0.1))[0], 0.1)

    def test_the_standard_library_is_enough(self):
        with mock.patch.object(_flat, "np", None):
            made = _flat.observations(spaces.Dict({"a": spaces.Box(0, 9, (2, 2)), "b": spaces.Discrete(2)}))
            out = array("f", [0.0] * made.size)
            with memoryview(out) as view:
                made.write({"a": [[1, 2], [3, 4]], "b": 1}, view)
            self.assertEqual(out.tolist(), [1, 2, 3, 4, 0, 1])
            read = _flat.actions(spaces.Tuple([spaces.Box(0, 9, (2, 2)), spaces.Discrete(2, 3), spaces.MultiBinary(2)])).read
            self.assertEqual(read([1, 2, 3, 4, 1, 0, 1]), ([[1, 2], [3, 4]], 4, [0, 1]))
