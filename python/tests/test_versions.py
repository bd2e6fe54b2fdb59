"""That the package is written in the Python that it promises: 3.9."""

import ast
import glob
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST = (3, 9)


class Versions(unittest.TestCase):
    def test_every_file_is_of_the_oldest_python_that_is_promised(self):
        files = [path for folder in ("keel", "bench", "tests") for path in glob.glob(os.path.join(ROOT, folder, "*.py"))]
        self.assertGreater(len(files), 25)
        for path in files:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            tree = ast.parse(text, path, feature_version=OLDEST)
            # `int | None` is evaluated in an annotation unless this is there.
            has = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
            annotated = any(isinstance(getattr(node, "annotation", None) or getattr(node, "returns", None), ast.BinOp) for node in ast.walk(tree))
            self.assertTrue(has or not annotated, f"{path}: from __future__ import annotations")

    def test_newer_syntax_would_be_seen(self):
        with self.assertRaises(SyntaxError):
            ast.parse("match 1:\n    case 1: pass\n", feature_version=OLDEST)

    def test_the_project_promises_it(self):
        path = os.path.join(ROOT, "pyproject.toml")
        if not os.path.exists(path):
            self.skipTest("an installed package has none")
        with open(path, encoding="utf-8") as file:
            self.assertRegex(file.read(), re.escape('requires-python = ">=%d.%d"' % OLDEST))
