"""How the page changes a run that trains in Python: the requests of src/runs/inbox.ts, answered from here."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from keel._files import encode, read_bounded, write_whole

_MOST_BYTES = 2**16
_MOST_AT_ONCE = 100
_REQUEST = re.compile(r"([0-9a-f-]{36})\.json\Z")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{0,60}\Z")

Setter = Callable[[Optional[float]], Optional[str]]
"""Makes a change; what it gives is added to the answer. A ValueError says why not."""


class Inbox:
    """Requests to set one of `controls` or to stop; `changed` is told of what was done."""

    def __init__(self, directory: str, controls: "Mapping[str, Setter]", changed: "Callable[[str, Optional[float], str, str], None]") -> None:
        self._run = directory
        self._dir = os.path.join(directory, "inbox")
        self._controls = dict(controls)
        self._changed = changed
        self._changes: "List[Dict[str, Any]]" = []
        self.stop_by: Optional[str] = None

    def look(self, iteration: int) -> None:
        """Answers what was asked since the last look. Raises OSError only if the directory cannot be read at all."""
        try:
            names = os.listdir(self._dir)
        except FileNotFoundError:
            return  # nobody has asked anything yet
        asked = [match for match in (_REQUEST.match(name) for name in names[: 10 * _MOST_AT_ONCE]) if match]
        for match in asked[:_MOST_AT_ONCE]:
            path = os.path.join(self._dir, match.group(0))
            try:
                data = read_bounded(path, _MOST_BYTES)
            except (OSError, ValueError) as error:
                if not isinstance(error, FileNotFoundError):
                    _remove(path)
                    self._answer(match.group(1), False, f"the request cannot be read: {error}")
                continue
            if not _remove(path):
                continue  # whoever asked has taken it back
            done, message = self._do(data, iteration)
            self._answer(match.group(1), done, message)

    def _do(self, data: bytes, iteration: int) -> "Tuple[bool, str]":
        try:
            request = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            return False, "the request cannot be understood: it is no JSON"
        by = request.get("by") if isinstance(request, dict) else None
        if not isinstance(by, str) or not 1 <= len(by) <= 60:
            return False, "the request cannot be understood: it does not say by whom it is"
        if request.get("type") == "stop":
            self.stop_by = by
            return True, "the run stops after its current step; what its trainer saves is there"
        key, value = request.get("key"), request.get("value")
        if request.get("type") != "set" or not isinstance(key, str) or not _KEY.match(key):
            return False, "the request cannot be understood: send { type: 'set', key, value, by } or { type: 'stop', by }"
        setter = self._controls.get(key)
        if setter is None:
            can = ", ".join(self._controls) or "nothing"
            return False, f"{key} cannot be changed in this run: {can} can"
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value)):
            return False, f"{key} is {str(value)[:40]}: must be a finite number or null"
        try:
            more = setter(value)
        except ValueError as error:
            return False, str(error)
        except Exception as error:  # of their trainer: the run goes on as it was
            return False, f"{key} was not changed: {type(error).__name__}: {error}"
        now = "none" if value is None else f"{value:g}"
        message = f"{key} is {now} from iteration {iteration} on{'' if not more else f': {more}'}"
        self._changes.append({"iteration": iteration, "key": key, "value": value, "by": by})
        try:
            write_whole(os.path.join(self._run, "adjustments.json"), encode({"changes": self._changes}) + "\n")
        except OSError:
            pass  # it was made all the same; only the page does not see it
        self._changed(key, value, by, message)
        return True, message

    def _answer(self, request: str, done: bool, message: str) -> None:
        try:
            write_whole(os.path.join(self._dir, f"{request}.answer"), encode({"done": done, "message": message}) + "\n")
        except OSError:
            pass  # nobody to tell, or no room to: the run goes on


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
        return True
    except OSError:
        return False


def positive(name: str, apply: "Callable[[float], Optional[str]]") -> Setter:
    """A setter of a number above 0."""

    def set_it(value: Optional[float]) -> Optional[str]:
        if value is None or not value > 0:
            raise ValueError(f"{name} is {'null' if value is None else f'{value:g}'}: must be above 0")
        return apply(value)

    return set_it
