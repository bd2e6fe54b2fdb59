"""Frames between Keel and an environment server: a header of four numbers, and so many bytes."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import time
from typing import Any, Tuple

#: The first number of every frame: KEEL in ASCII, little-endian.
MAGIC = 0x4C45454B
#: What a frame asks for, or answers.
HELLO, MAKE, RESET, STEP, STATE, RENDER, DROP, REPLAY, QUIT = range(9)
#: Added to the number of an answer that tells of an error, as JSON.
FAILED = 0x80
#: What a frame says that answers nothing: the call takes long. The minder sends it.
WAITING = 0xFF
#: The place of the time of the question in the memory that the minder sees, too.
ASKED = 3
HEADER = struct.Struct("<IIII")  # magic, what, sequence, bytes that follow
#: Bytes that follow, at the most.
MOST_BYTES = 1 << 27

PROTOCOL = 3


class FrameError(Exception):
    """What was read is no frame."""


class Closed(Exception):
    """The other side has gone."""


class Channel:
    """
    Two pipes, read and written whole. `busy[ASKED]` is since when it has owed an answer. Whoever else writes to the pipe must
    have locked `lock`, because a frame of more than PIPE_BUF bytes is written in pieces.
    """

    def __init__(self, fd_in: int, fd_out: int, busy: Any, lock: int) -> None:
        self._in = fd_in
        self._out = fd_out
        self._busy = busy
        self._lock = lock
        self._buffer = bytearray(1 << 16)

    def read(self) -> Tuple[int, int, memoryview]:
        """What, sequence and payload; the payload stays until the next read."""
        view = memoryview(self._buffer)
        done = 0
        while done < HEADER.size:
            done = self._more(view, done)
        magic, what, sequence, length = HEADER.unpack_from(view)
        if magic != MAGIC or length > MOST_BYTES:
            raise FrameError(f"a frame begins with {magic:#x} and says {length} bytes")
        whole = HEADER.size + length
        if whole > len(self._buffer):
            self._buffer = bytearray(whole)
            larger = memoryview(self._buffer)
            larger[:done] = view[:done]
            view = larger
        while done < whole:
            done = self._more(view[:whole], done)
        if done != whole:
            raise FrameError(f"{done - whole} bytes too many")
        self._busy[ASKED] = time.monotonic()
        return what, sequence, view[HEADER.size : whole]

    def _more(self, view: memoryview, done: int) -> int:
        try:
            count = os.readv(self._in, [view[done:]])
        except OSError as error:
            raise Closed from error
        if count == 0:
            raise Closed
        return done + count

    def write(self, what: int, sequence: int, payload: Any) -> None:
        self.write_whole(HEADER.pack(MAGIC, what, sequence, len(payload)) + bytes(payload))

    def write_whole(self, frame: Any) -> None:
        """A frame with its header."""
        self._busy[ASKED] = 0
        try:
            if len(frame) <= select.PIPE_BUF:
                os.write(self._out, frame)
                return
            view = memoryview(frame)
            done = 0
            fcntl.lockf(self._lock, fcntl.LOCK_EX)
            try:
                while done < len(view):
                    done += os.write(self._out, view[done:])
            finally:
                fcntl.lockf(self._lock, fcntl.LOCK_UN)
        except OSError as error:
            raise Closed from error
