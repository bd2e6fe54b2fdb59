"""The process between Keel and an environment server, which sees to it that nothing is left.

Keel's thread waits for the server in a read that nothing can interrupt, and an environment may hang in code that lets no
other thread of its process run, or fork processes that keep pipes open. So this small process, forked before anything is
imported, stands outside of both: where Keel is gone it ends the whole group, where a call takes long it tells Keel to do
other things meanwhile, where it takes too long it asks the server for its stack and ends the group, and where the server has
died it writes down why, for Keel to read.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional

from keel._frames import ASKED, HEADER, MAGIC, WAITING

#: Of the last that was printed, so much is kept for the report.
_TAIL = 1 << 14
#: How often it looks, in seconds.
_LOOK = 0.2
#: How long a server that was asked for its stack has to print it.
_LAST_WORDS = 1.0
#: A call that takes longer is one that Keel is told of.
_LONG = 0.1

#: What the server is at, in the memory that both see: since when, in which environment, doing what.
SINCE, ENVIRONMENT, PHASE = 0, 1, 2
#: 1 where the server ends because Keel has closed its pipe.
LEFT = 4
STARTING, RESETTING, STEPPING, OTHER = 1, 2, 3, 4
PHASES = {STARTING: "start", RESETTING: "reset", STEPPING: "step", OTHER: "call"}


class Minder:
    def __init__(self, server: int, output: int, busy: Any, folder: str, limits: Dict[str, float], answers: int, lock: int) -> None:
        self._server = server
        self._answers = answers
        self._lock = lock
        self._said = 0.0
        self._output: Optional[int] = output
        self._busy = busy
        self._folder = folder
        self._limits = limits
        self._tail = bytearray()

    def watch(self) -> NoReturn:
        wake, ring = os.pipe()
        for fd in (wake, ring):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._keel_is_gone())
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        hung: Optional[float] = None
        ends_at = float("inf")
        while True:
            inputs: List[int] = [0, wake] + ([] if self._output is None else [self._output])
            ready, _, _ = select.select(inputs, [], [], _LOOK)
            if wake in ready:
                _drain(wake)
            if self._output in ready:
                self._forward()
            if 0 in ready and os.read(0, 4096) == b"":
                self._keel_is_gone()
            ended, status = os.waitpid(self._server, os.WNOHANG)
            if ended:
                self._report(status, hung)
            now = time.monotonic()
            self._say_long(now)
            if hung is None:
                hung = self._too_long(now)
                if hung is not None:
                    ends_at = now + _LAST_WORDS
                    _kill(self._server, signal.SIGABRT)  # faulthandler prints where it is
            elif now >= ends_at:
                _kill(self._server, signal.SIGKILL)

    def _say_long(self, now: float) -> None:
        """Once of each call that takes long, between the server's answers."""
        asked = self._busy[ASKED]
        if asked == 0 or asked == self._said or now - asked < _LONG:
            return
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # it is answering
        try:
            if self._busy[ASKED] == asked:
                os.write(self._answers, HEADER.pack(MAGIC, WAITING, 0, 0))
                self._said = asked
        except OSError:
            pass
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN)

    def _too_long(self, now: float) -> Optional[float]:
        since = self._busy[SINCE]
        if since == 0:
            return None
        starting = self._busy[PHASE] == STARTING
        limit = self._limits["startSeconds" if starting else "stepSeconds"]
        return now - since if now - since > limit else None

    def _forward(self) -> None:
        """What is printed goes on to Keel's error output, if somebody reads that: waiting there would blind this process."""
        assert self._output is not None
        text = os.read(self._output, 4096)
        if text == b"":
            self._output = None
            return
        self._tail += text
        del self._tail[:-_TAIL]
        try:
            _, writable, _ = select.select([], [2], [], 0)
            if writable:
                os.write(2, text)
        except OSError:
            pass

    def _report(self, status: int, hung: Optional[float]) -> NoReturn:
        """How the server ended. Keel reads it when its pipe ends, which this process keeps open until then."""
        if self._busy[LEFT] == 1 and select.select([0], [], [], 1.0)[0] and os.read(0, 4096) == b"":
            self._keel_is_gone()  # the server has only seen it first
        until = time.monotonic() + 0.2
        while self._output is not None and select.select([self._output], [], [], 0)[0] and time.monotonic() < until:
            self._forward()
        said = {
            "exit": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "hung": hung,
            "environment": int(self._busy[ENVIRONMENT]),
            "phase": PHASES.get(int(self._busy[PHASE]), "call"),
            "tail": self._tail.decode("utf-8", "replace"),
        }
        path = os.path.join(self._folder, "report.json")
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(said, file)
            os.rename(f"{path}.new", path)
        except OSError:
            pass
        _end_group()

    def _keel_is_gone(self) -> NoReturn:
        for name in ("in", "out", "lock", "config.json", "report.json"):
            try:
                os.unlink(os.path.join(self._folder, name))
            except OSError:
                pass
        try:
            os.rmdir(self._folder)
        except OSError:
            pass
        _end_group()


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _end_group() -> NoReturn:
    """Ends the server, all that it has started and this process."""
    os.killpg(0, signal.SIGKILL)
    sys.exit(1)  # not reached


def dies_with_parent(parent: int) -> None:
    """Where somebody kills the minder alone, the server goes as well."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
        return
    import threading

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
