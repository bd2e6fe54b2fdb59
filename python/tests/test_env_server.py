"""What Keel and the terminal are told of an error in an environment."""

import contextlib
import io
import unittest

from keel.env_server import _told


class DependencyNotInstalled(Exception):
    """Named as Gymnasium's."""


def told_of(error: Exception) -> "tuple[str, str]":
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        try:
            raise error
        except Exception as raised:
            message = str(_told(raised)["message"])
    return message, printed.getvalue()


class Told(unittest.TestCase):
    def test_an_error_is_printed_with_its_traceback(self) -> None:
        message, printed = told_of(ValueError("no such door"))
        self.assertEqual(message, "ValueError: no such door")
        self.assertIn("Traceback (most recent call last)", printed)

    def test_a_missing_package_is_one_line(self) -> None:
        message, printed = told_of(DependencyNotInstalled("pygame is not installed, run `pip install pygame`"))
        self.assertEqual(message, "DependencyNotInstalled: pygame is not installed, run `pip install pygame`")
        self.assertEqual(printed, "")


if __name__ == "__main__":
    unittest.main()
