"""Asking `keel doctor` about a run while it trains: a process beside it that is never waited for."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import Iterator, Optional, Sequence

SICK = 2
_TIMEOUT_S = 300.0


class Doctor:
    """Looks at a run now and then. `sick` is true once the verdict was sick at two looks in a row: one may be a dip."""

    def __init__(self, directory: str, every_s: float, command: "Optional[Sequence[str]]" = None) -> None:
        found = list(command) if command is not None else _installed()
        self.missing = found is None
        self._command = [*(found or []), "doctor", directory, "--fail-on", "sick", "--json"]
        self._every_s = every_s
        self._next = time.monotonic() + every_s
        self._process: "Optional[subprocess.Popen[bytes]]" = None
        self._began = 0.0
        self._in_a_row = 0
        self.sick = False

    def look(self) -> None:
        """Takes what the last look found and begins the next when it is time."""
        if self.missing:
            return
        now = time.monotonic()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                if now - self._began > _TIMEOUT_S:
                    self.close()
                return
            self._process = None
            self._in_a_row = self._in_a_row + 1 if code == SICK else 0
            self.sick = self.sick or self._in_a_row >= 2
            return
        if now < self._next or self.sick:
            return
        self._next = now + self._every_s
        try:
            quiet = subprocess.DEVNULL
            self._process = subprocess.Popen(self._command, stdin=quiet, stdout=quiet, stderr=quiet)
            self._began = now
        except OSError:
            self.missing = True

    def close(self) -> None:
        """Ends a look that is under way."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass


def _installed() -> "Optional[list[str]]":
    """`$KEEL`, a command on the path, or Keel's package: the one that this file lies in, or the project's that the program was started in."""
    named = os.environ.get("KEEL")
    found = named if named and os.path.exists(named) else shutil.which("keel")
    if found is not None:
        return [found]
    node = shutil.which("node")
    around = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        here = os.getcwd()
    except OSError:  # it was deleted
        here = os.sep
    for package in (around, *_packages(here)):
        entry = os.path.join(package, "bin", "keel.js")
        if node is not None and os.path.exists(entry):
            return [node, entry]
    return None


def _packages(folder: str) -> "Iterator[str]":
    """Where npm installs Keel for a folder and all below it."""
    while True:
        yield os.path.join(folder, "node_modules", "keel")
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
