"""A run directory as Keel's own are (docs/ppo.md, "A run on disk"), written by a trainer in Python. Nothing that goes wrong here reaches the training."""

from __future__ import annotations

import atexit
import os
import secrets
import sys
import time
import traceback
from datetime import datetime, timezone
from typing import Any, Callable, Mapping, Optional, Sequence

from keel._files import append_line, encode, identity, number_text, plain, write_whole
from keel._inbox import Inbox, Setter
from keel._names import OWN, namer, number_of
from keel._verdict import Doctor

_POLL_S = 0.5
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"


_OPTIONS = ("name", "root", "stop_on", "doctor_every", "doctor")


def checked(**options: Any) -> "dict[str, Any]":
    """What a callback was told of its run: wrong before the training begins, not at its first step."""
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"{name} is no option of KeelCallback: use {', '.join(_OPTIONS)}")
    if options.get("stop_on") not in (None, "sick"):
        raise ValueError(f"stop_on is {options['stop_on']!r}: must be 'sick' or None")
    return {name: value for name, value in options.items() if value is not None}


class Run:
    """One training, in one directory.

    `controls` are the settings that the page may change while it trains: a function each that is given the new value. `stop_on="sick"` asks
    `keel doctor` every `doctor_every` seconds. `stopping` says why the loop should end, once it should.
    """

    def __init__(
        self,
        name: str,
        *,
        root: str = "runs",
        algorithm: str = "python",
        config: "Optional[Mapping[str, Any]]" = None,
        seed: int = 0,
        versions: "Optional[Mapping[str, str]]" = None,
        controls: "Optional[Mapping[str, Setter]]" = None,
        names: "Optional[Mapping[str, Any]]" = None,
        stop_on: Optional[str] = None,
        doctor: "Optional[Sequence[str]]" = None,
        doctor_every: float = 60.0,
    ) -> None:
        checked(stop_on=stop_on)
        self.directory: Optional[str] = None
        self.stopping: Optional[str] = None
        self.iteration = 0
        self.paused = False
        self._name_of = namer(names or {})
        self._pid = os.getpid()
        self._step = 0
        self._warned: "set[str]" = set()
        self._closed = False
        self._began = self._last = time.monotonic()
        self._last_step: Optional[int] = None
        self._polled = 0.0
        self._inbox: Optional[Inbox] = None
        self._doctor: Optional[Doctor] = None
        try:
            settable = {**(controls or {}), "paused": self._pause}
            self._make(name, root, algorithm, dict(config or {}), seed, dict(versions or {}), list(settable))
            assert self.directory is not None
            self._inbox = Inbox(self.directory, settable, self._changed)
        except Exception as error:
            self._fail("nothing is logged", error)
            self.directory = None
        if stop_on is not None and self.directory is not None:
            self._doctor = Doctor(self.directory, doctor_every, doctor)
            if self._doctor.missing:
                self._warn("doctor", "stop_on='sick' needs the keel command, which is neither on the PATH nor installed here by npm: the training is not stopped by it")
        atexit.register(self._at_exit)

    # ------------------------------------------------------------------------------------------------ logging

    def log(self, step: int, metrics: "Mapping[str, Any]") -> "Run":
        """Writes a row: what one iteration measured, after `step` steps (or samples, or tokens) in all."""
        self.write(step, {name: value for name, value in metrics.items()})
        self.poll(now=True)
        return self

    def write(self, step: int, metrics: "Mapping[str, Any]") -> None:
        """Writes a row and does nothing else."""
        if self.directory is None or self._closed or os.getpid() != self._pid:
            return
        try:
            count = int(step)
            now = time.monotonic()
            values: "dict[str, float]" = {}
            skipped = []
            for theirs, value in metrics.items():
                number = number_of(value)
                name, times = self._name_of(str(theirs))
                if number is None:
                    skipped.append(str(theirs))
                elif name not in OWN:
                    values[name] = number * times
            if skipped:
                self._warn("numbers", f"not logged, because they are no numbers: {', '.join(skipped[:5])}")
            if self._last_step is not None and count > self._last_step and now > self._last:
                values.setdefault("time/steps_per_second", (count - self._last_step) / (now - self._last))
            values["time/elapsed_s"] = now - self._began
            values["time/unix_s"] = time.time()
            # What the clock said comes last in a line.
            ordered = sorted(values, key=lambda name: (name.startswith("time/"), name))
            row = ",".join([f'"train/iteration":{self.iteration + 1}', f'"train/step":{max(0, count)}', *(f'"{name}":{number_text(values[name])}' for name in ordered)])
            append_line(self._path("metrics.jsonl"), "{" + row + "}")
            self.iteration += 1
            self._step = max(0, count)
            self._last, self._last_step = now, count
        except Exception as error:
            self._fail("rows are lost", error)

    def event(self, kind: str, message: str, **fields: Any) -> None:
        """Writes what happened, for the page's list of events."""
        if self.directory is None or os.getpid() != self._pid:
            return
        try:
            said = {"type": kind, "iteration": self.iteration, "step": self._step, "message": message, **fields, "time/unix_s": time.time()}
            append_line(self._path("events.jsonl"), encode(said))
        except Exception as error:
            self._fail("events are lost", error)

    # ------------------------------------------------------------------------------------------------ being asked

    def poll(self, now: bool = False) -> Optional[str]:
        """Does what the page asked for; waits while it is paused. Gives why the training should stop, if it should. Cheap: it looks twice a second."""
        at = time.monotonic()
        if not now and at - self._polled < _POLL_S:
            return self.stopping
        self._polled = at
        if self.directory is None or self._closed or os.getpid() != self._pid:
            return self.stopping
        self._look()
        while self.paused and self.stopping is None:
            time.sleep(0.1)
            if not os.path.isdir(self.directory):
                self.paused = False  # nobody could ever ask to go on
            self._look()
        if self._doctor is not None and self.stopping is None:
            self._doctor.look()
            if self._doctor.sick:
                self.stopping = "keel doctor says that the run is sick"
                self.event("notice", f"{self.stopping}: it is stopped", text=self.stopping)
        return self.stopping

    def _look(self) -> None:
        if self._inbox is None:
            return
        try:
            self._inbox.look(self.iteration + 1)
            if self._inbox.stop_by is not None and self.stopping is None:
                self.stopping = f"stopped by {self._inbox.stop_by}"
        except Exception as error:
            self.paused = False
            self._fail("the page cannot change the run", error)

    def _pause(self, value: Optional[float]) -> Optional[str]:
        if value not in (0, 1):
            raise ValueError("paused is 1 or 0")
        self.paused = value == 1
        return "it waits" if self.paused else "it goes on"

    def _changed(self, key: str, value: Optional[float], by: str, message: str) -> None:
        # An act belongs to the row that is written after it.
        self.iteration += 1
        self.event("act", message, what=message, by=by, key=key, value=value)
        self.iteration -= 1

    # ------------------------------------------------------------------------------------------------ beginning and end

    def close(self, reason: Optional[str] = None, status: Optional[str] = None) -> None:
        """Says how it ended. Without it the end of the program does."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        atexit.unregister(self._at_exit)
        if self._doctor is not None:
            self._doctor.close()
        if self.directory is None:
            return
        why = reason if reason is not None else self.stopping
        state = status if status is not None else ("finished" if why is None else "stopped")
        try:
            self.event(state, {"finished": "finished", "stopped": f"stopped: {why}", "failed": f"failed: {why}"}[state], **({} if state == "finished" else {"reason": why or state}))
            now = _utc()
            self._manifest.update(status=state, updatedAt=now, endedAt=now, iteration=self.iteration, step=self._step, reason=why)
            write_whole(self._path("manifest.json"), encode(self._manifest) + "\n")
        except Exception as error:
            self._fail("its end is not noted", error)
        try:
            os.unlink(self._path("lock.1"))
        except OSError:
            pass

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.close("interrupted", "stopped")
        else:
            self.close(traceback.format_exception_only(kind, error)[-1].strip()[:500], "failed")

    def _at_exit(self) -> None:
        error = getattr(sys, "last_value", None)
        self.__exit__(type(error), error, None)

    def _make(self, name: str, root: str, algorithm: str, config: "dict[str, Any]", seed: int, versions: "dict[str, str]", controls: "list[str]") -> None:
        from keel import __version__

        os.makedirs(root, exist_ok=True)
        slug = "".join(c if c.isascii() and (c.isalnum()) else "-" for c in os.path.basename(name.rstrip("/")).lower())
        slug = "-".join(part for part in slug.split("-") if part)[:40].strip("-") or "run"
        when = datetime.now(timezone.utc)
        number = seed if isinstance(seed, int) and 0 <= seed < 2**53 else 0
        for _ in range(100):
            suffix = "".join(secrets.choice(_LETTERS) for _ in range(4))
            run_id = f"{slug}-{when:%Y%m%d-%H%M%S}-seed{number}-{suffix}"
            directory = os.path.abspath(os.path.join(root, run_id))
            try:
                os.mkdir(directory)
                break
            except FileExistsError:
                continue
        else:
            raise OSError(f"{root}: no free name for a run")
        self.directory = directory
        me = identity()
        now = _utc(when)
        # The lock first: nobody sees the run without its writer.
        write_whole(self._path("lock.1"), encode({**me, "since": now, "token": secrets.token_hex(16)}))
        self._manifest: "dict[str, Any]" = {
            "kind": "keel-run",
            "schema": 1,
            "id": run_id,
            "status": "running",
            "algorithm": algorithm,
            "environment": {"id": name[:200] or "python", "version": "", "options": {}, "reward": {}},
            "config": plain({**config, "csv": False, "tensorboard": False, "paused": 0}),
            "seed": number,
            "versions": {"keel-python": __version__, "python": sys.version.split()[0], **{k: str(v)[:100] for k, v in versions.items()}},
            "parent": None,
            "controls": controls,
            "startedAt": now,
            "updatedAt": now,
            "endedAt": None,
            "iteration": 0,
            "step": 0,
            "pid": me["pid"],
            "host": me["host"],
            "resumes": 0,
            "reason": None,
        }
        with open(self._path("metrics.jsonl"), "x"):
            pass
        append_line(self._path("events.jsonl"), encode({"type": "started", "iteration": 0, "step": 0, "message": "started", "pid": me["pid"], "time/unix_s": time.time()}), new=True)
        write_whole(self._path("manifest.json"), encode(self._manifest) + "\n")

    def _path(self, name: str) -> str:
        assert self.directory is not None
        return os.path.join(self.directory, name)

    def _fail(self, what: str, error: Exception) -> None:
        said = str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        self._warn("log", f"{what}: {said}; the training goes on")

    def _warn(self, kind: str, text: str) -> None:
        """Once for each kind: a broken disk fails at every row."""
        if kind in self._warned:
            return
        self._warned.add(kind)
        try:
            print(f"keel: {text}", file=sys.stderr)
        except (OSError, ValueError):
            pass


def _utc(when: Optional[datetime] = None) -> str:
    at = datetime.now(timezone.utc) if when is None else when
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


# ---------------------------------------------------------------------------------------------------- for any loop

_current: Optional[Run] = None


def start(name: str = "python", **options: Any) -> Run:
    """Begins the run that `keel.log` writes to; see `Run` for the options. One that was open is finished."""
    global _current
    if _current is not None:
        _current.close()
    from keel._names import CLEANRL

    options["names"] = {**CLEANRL, **(options.get("names") or {})}
    _current = Run(name, **options)
    return _current


def log(step: int, metrics: "Mapping[str, Any]") -> Run:
    """Writes a row of the run that `keel.start` began, or of one named after the program."""
    run = _current
    if run is None or run._closed:
        program = os.path.splitext(os.path.basename(sys.argv[0] if sys.argv else ""))[0]
        run = start(program or "python")
    return run.log(step, metrics)
