"""Files of a run as Keel's own are: whole or not at all, and nothing read that is not a plain file."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
import subprocess
import sys
from typing import Any, Optional


def write_whole(path: str, text: str) -> None:
    """The new text, or the old one."""
    temporary = f"{path}.{os.getpid()}.{secrets.token_hex(6)}.tmp"
    try:
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass
        raise


def append_line(path: str, line: str, new: bool = False) -> None:
    """One line in one write; where the disk has no room for all of it, none of it stays. A file that was deleted is not made anew unless it is `new`."""
    data = line.encode("utf-8") + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | (os.O_CREAT if new else 0), 0o666)
    try:
        before = os.fstat(file).st_size
        try:
            if os.write(file, data) < len(data):
                raise OSError(errno.ENOSPC, "No space left on device")
        except OSError:
            os.ftruncate(file, before)
            raise
    finally:
        os.close(file)


def read_bounded(path: str, most: int) -> bytes:
    """A plain file's bytes; a pipe, a link or a file beyond the limit is refused and never waited for."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no plain file")
        data = os.read(file, most + 1)
        if len(data) > most:
            raise ValueError(f"it has more than {most} bytes")
        return data
    finally:
        os.close(file)


def number_text(value: float) -> str:
    """A number as Keel's log has it: JSON has no NaN and no infinities."""
    if value != value:
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return str(int(value)) if value == int(value) and abs(value) < 2**53 and math.copysign(1, value) > 0 else repr(value)


def plain(value: Any, depth: int = 4) -> Any:
    """What JSON can hold, of a setting: numbers, text, lists and objects; anything else by its name."""
    if value is None or isinstance(value, (bool, int)):
        return value if not isinstance(value, int) or abs(value) < 2**53 else float(value)
    if isinstance(value, str):
        return value[:500]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > 0 and isinstance(value, dict):
        return {str(name)[:200]: plain(part, depth - 1) for name, part in list(value.items())[:1000]}
    if depth > 0 and isinstance(value, (list, tuple)):
        return [plain(part, depth - 1) for part in list(value)[:1000]]
    name = getattr(value, "__name__", None)
    return name[:200] if isinstance(name, str) else type(value).__name__


def encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def identity() -> "dict[str, Any]":
    """This process, as Keel asks later whether it is still that one."""
    boot = _first_line("/proc/sys/kernel/random/boot_id") if sys.platform == "linux" else None
    return {"pid": os.getpid(), "start": _start(), "boot": boot, "host": os.uname().nodename if hasattr(os, "uname") else _host()}


def _host() -> str:
    import socket

    return socket.gethostname()


def _start() -> Optional[str]:
    try:
        if sys.platform == "linux":
            text = _first_line(f"/proc/{os.getpid()}/stat") or ""
            return text[text.rindex(")") + 2 :].split(" ")[19]
        if sys.platform == "win32":
            return None
        environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        said = subprocess.run(["ps", "-o", "lstart=", "-p", str(os.getpid())], capture_output=True, text=True, timeout=10, env=environment)
        return said.stdout.strip() or None
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def _first_line(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return None
