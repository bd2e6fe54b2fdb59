"""Environments for Keel, in a process of their own. Keel starts it: `main` is given a folder with pipes and a config."""

from __future__ import annotations

import errno
import faulthandler
import json
import mmap
import os
import struct
import sys
import sysconfig
import time
import traceback
from array import array
from typing import Any, Dict, List, NoReturn, Tuple

from keel import _frames as frames
from keel import _minder as minder

#: Of an environment's flags in an answer; 1 is terminated, 2 is truncated.
FAILED = 4
#: Of a traceback, the end.
_MOST_TRACE = 20_000

_forked = False


def main(folder: str) -> NoReturn:
    """Opens the pipes, leaves a minder behind, and serves until Keel has gone."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config: Dict[str, Any] = json.load(file)
    # Without waiting: Keel may be gone already.
    fd_in = os.open(os.path.join(folder, "in"), os.O_RDONLY | os.O_NONBLOCK)
    fd_out = os.open(os.path.join(folder, "out"), os.O_WRONLY | os.O_NONBLOCK)
    for fd in (fd_in, fd_out):
        os.set_blocking(fd, True)
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    busy = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
    output, printed = os.pipe()
    parent = os.getpid()
    server = os.fork()
    if server:
        os.close(fd_in)
        os.close(printed)
        minder.Minder(server, output, busy, folder, config, fd_out, lock).watch()
    os.close(output)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    for fd in (null, printed):
        os.close(fd)
    minder.dies_with_parent(parent)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()
    os.register_at_fork(after_in_child=lambda: _leave(fd_in, fd_out))
    status = 1
    try:
        Server(frames.Channel(fd_in, fd_out, busy, lock), config, busy).serve()
        status = 0
    except frames.Closed as closed:
        own = isinstance(closed.__cause__, OSError) and closed.__cause__.errno == errno.EBADF
        status = 1 if own else 0
        busy[minder.LEFT] = 0 if own or _forked else 1
        if own and not _forked:
            _say("an environment has closed a file that is not its own: leave those alone that it has not opened")
        if _forked:
            _say("a process that the environment has forked came back into Keel's loop: end it there, with os._exit")
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _leave(fd_in: int, fd_out: int) -> None:
    """In a process that an environment forks: it must neither answer for its parent nor keep the pipes open."""
    global _forked
    if _forked:
        return
    _forked = True
    os.close(fd_in)
    os.close(fd_out)


def _say(text: str) -> None:
    os.write(2, f"keel: {text}\n".encode())


class Answer:
    """The memory of an answer for so many environments: rewards, measures, observations, flags."""

    def __init__(self, count: int, measures: int, numbers: int) -> None:
        from keel._flat import np

        rewards_at = frames.HEADER.size
        measures_at = rewards_at + 8 * count
        rows_at = measures_at + 8 * count * measures
        flags_at = rows_at + 4 * count * numbers
        self.frame = bytearray(flags_at + count)
        view = memoryview(self.frame)
        self.rewards = view[rewards_at:measures_at].cast("d")
        self.measures = view[measures_at:rows_at].cast("d") if measures else array("d")
        self.flags = view[flags_at:]
        rows = view[rows_at:flags_at]
        if np is not None:
            whole = np.frombuffer(rows, dtype=np.float32).reshape(count, numbers)
            self.rows: List[Any] = [whole[i] for i in range(count)]
        else:
            self.rows = [rows[4 * i * numbers : 4 * (i + 1) * numbers].cast("f") for i in range(count)]

    def send(self, channel: frames.Channel, what: int, sequence: int, errors: List[Dict[str, Any]]) -> None:
        more = json.dumps(errors).encode() if errors else b""
        frames.HEADER.pack_into(self.frame, 0, frames.MAGIC, what, sequence, len(self.frame) - 16 + len(more))
        channel.write_whole(self.frame + more if more else self.frame)


class Server:
    """Answers frame after frame."""

    def __init__(self, channel: frames.Channel, config: Dict[str, Any], busy: Any) -> None:
        self._channel = channel
        self._config = config
        self._busy = busy
        self._envs: List[Any] = []
        self._answers: Dict[int, Answer] = {}
        self._measures = len(config.get("info") or ())

    def serve(self) -> None:
        self._channel.write(frames.HELLO, 0, json.dumps(self._hello()).encode())
        channel, busy = self._channel, self._busy
        while True:
            if _forked:
                raise frames.Closed
            what, sequence, payload = channel.read()
            if what == frames.STEP:
                self._step(sequence, payload)
            elif what == frames.QUIT:
                self._quit()
                return
            else:
                try:
                    self._other(what, sequence, payload)
                except (frames.Closed, frames.FrameError):
                    raise
                except BaseException as error:  # an environment may raise SystemExit
                    self._busy[minder.SINCE] = 0
                    channel.write(what | frames.FAILED, sequence, json.dumps(_told(error, what == frames.MAKE and len(payload) > 0)).encode())
            busy[minder.SINCE] = 0

    def _hello(self) -> Dict[str, Any]:
        return {"protocol": frames.PROTOCOL, "python": sys.version.split()[0], "pid": os.getpid()}

    def _begin(self, phase: int, index: int) -> None:
        busy = self._busy
        busy[minder.ENVIRONMENT] = index
        busy[minder.PHASE] = phase
        busy[minder.SINCE] = time.monotonic()

    def _other(self, what: int, sequence: int, payload: memoryview) -> None:
        channel = self._channel
        if what == frames.MAKE:
            self._begin(minder.STARTING, len(self._envs))
            from keel._adapter import Hosted

            made = Hosted(self._config)
            self._envs.append(made)
            described = {"index": len(self._envs) - 1, **made.describe()}
            channel.write(what, sequence, json.dumps(described).encode())
            return
        index = int(struct.unpack_from("<I", payload)[0])
        if what == frames.RESET:
            self._reset(sequence, payload)
            return
        if what == frames.DROP:
            env, self._envs[index] = self._envs[index], None
            self._begin(minder.OTHER, index)
            if env is not None:
                env.close()
            channel.write(what, sequence, b"")
            return
        env = self._env(index)
        if what == frames.REPLAY:
            self._replay(env, index, sequence, payload)
        elif what == frames.STATE:
            self._begin(minder.OTHER, index)
            channel.write(what, sequence, env.state().encode())
        elif what == frames.RENDER:
            self._begin(minder.OTHER, index)
            picture = env.render()
            height, width, _ = picture.shape
            channel.write(what, sequence, struct.pack("<II", width, height) + picture.tobytes())
        else:
            raise frames.FrameError(f"a frame asks for {what}, which is nothing")

    def _env(self, index: int) -> Any:
        env = self._envs[index] if index < len(self._envs) else None
        if env is None:
            raise frames.FrameError(f"a frame is for environment {index}, which is not there")
        return env

    def _answer(self, count: int) -> Answer:
        answer = self._answers.get(count)
        if answer is None:
            answer = Answer(count, self._measures, self._env_any().observations.size)
            self._answers[count] = answer
        return answer

    def _env_any(self) -> Any:
        return next(env for env in self._envs if env is not None)

    def _rows(self, payload: memoryview, count: int, size: int) -> List[Any]:
        from keel._flat import np

        if len(payload) != 4 * count * size:
            raise frames.FrameError(f"{len(payload)} bytes of actions, {4 * count * size} are {count} of {size}")
        if np is not None:
            # A copy: an environment may keep what it is given.
            return list(np.frombuffer(payload, dtype=np.float32).reshape(count, size).copy())
        numbers = payload.cast("f").tolist()
        return [numbers[i * size : (i + 1) * size] for i in range(count)]

    def _step(self, sequence: int, payload: memoryview) -> None:
        """One frame for all: each is stepped, and what goes wrong in one is that one's."""
        count = int(struct.unpack_from("<I", payload)[0])
        indices = struct.unpack_from(f"<{count}I", payload, 4)
        envs = [self._env(index) for index in indices]
        rows = self._rows(payload[4 + 4 * count :], count, envs[0].actions.size)
        answer = self._answer(count)
        rewards, flags, out = answer.rewards, answer.flags, answer.rows
        measures, busy, clock = self._measures, self._busy, time.monotonic
        since, place = minder.SINCE, minder.ENVIRONMENT
        busy[minder.PHASE] = minder.STEPPING
        errors: List[Dict[str, Any]] = []
        for k in range(count):
            env = envs[k]
            busy[place] = indices[k]
            busy[since] = clock()
            try:
                observation, rewards[k], terminated, truncated, info = env.step(rows[k])
                env.write(observation, out[k])
                flags[k] = terminated | truncated << 1
                if measures:
                    env.measure(info, answer.measures, k * measures)
            except BaseException as error:
                if _forked:
                    raise frames.Closed from error
                flags[k] = FAILED
                errors.append({"at": k, **_told(error)})
        busy[since] = 0
        answer.send(self._channel, frames.STEP, sequence, errors)

    def _reset(self, sequence: int, payload: memoryview) -> None:
        """Episodes begin, each with its seed; what goes wrong in one is that one's."""
        count = int(struct.unpack_from("<I", payload)[0])
        indices = struct.unpack_from(f"<{count}I", payload, 4)
        seeds = struct.unpack_from(f"<{count}q", payload, 4 + 4 * count)
        answer = self._answer(count)
        errors: List[Dict[str, Any]] = []
        for i in range(count * self._measures):
            answer.measures[i] = float("nan")
        for k in range(count):
            env = self._env(indices[k])
            answer.rewards[k] = 0.0
            answer.flags[k] = 0
            self._begin(minder.RESETTING, indices[k])
            try:
                env.write(env.reset(seeds[k]), answer.rows[k])
            except BaseException as error:
                if _forked:
                    raise frames.Closed from error
                answer.flags[k] = FAILED
                errors.append({"at": k, **_told(error)})
        self._busy[minder.SINCE] = 0
        answer.send(self._channel, frames.RESET, sequence, errors)

    def _replay(self, env: Any, index: int, sequence: int, payload: memoryview) -> None:
        """An episode up to where it was: from its seed, or from a state, by the same actions."""
        _, steps, seed, length = struct.unpack_from("<IIqI", payload)
        at = 24
        text = str(payload[at : at + length], "utf-8")
        rows = self._rows(payload[at + (length + 3) // 4 * 4 :], steps, env.actions.size)
        answer = self._answer(1)
        self._begin(minder.RESETTING, index)
        if length:
            env.restore(text)
            observation = None
        else:
            observation = env.reset(seed)
        total, flags = 0.0, 0
        for row in rows:
            self._begin(minder.STEPPING, index)
            observation, reward, terminated, truncated, _ = env.step(row)
            total += reward
            flags = terminated | truncated << 1
        if observation is not None:
            env.write(observation, answer.rows[0])
        answer.rewards[0] = total
        answer.flags[0] = flags
        answer.send(self._channel, frames.REPLAY, sequence, [])

    def _quit(self) -> None:
        for index, env in enumerate(self._envs):
            if env is None:
                continue
            self._begin(minder.OTHER, index)
            try:
                env.close()
            except Exception:
                traceback.print_exc()


def _told(error: BaseException, quiet: bool = False) -> Dict[str, Any]:
    """An error as Keel is told of it: its kind, its line, the place in the user's code, and the whole traceback."""
    from keel._adapter import Missing, WrongEnvironment
    from keel._flat import SpaceError

    kind = "missing" if isinstance(error, Missing) else "threw"
    ours = isinstance(error, (Missing, WrongEnvironment, SpaceError))
    text = str(error).strip()
    said = text if ours and text else f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SystemExit):
        said = f"it called sys.exit({error.code!r})"
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-_MOST_TRACE:]
    # What Gymnasium raises where a package is missing, such as pygame where pictures are asked for, says all in its one line.
    if not ours and not quiet and type(error).__name__ != "DependencyNotInstalled":
        sys.stderr.write(trace)
        sys.stderr.flush()
    return {
        "kind": kind,
        "package": getattr(error, "package", None),
        "message": said,
        "place": None if ours else _place(error),
        "traceback": trace,
    }


def _place(error: BaseException) -> str:
    """`my_env.py:12 in step`: the last line that is neither the server's own nor of a package, where there is such."""
    own = os.path.dirname(os.path.abspath(__file__))
    stack: List[Tuple[str, int, str]] = [
        (frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__)
    ]
    theirs = [one for one in stack if not os.path.abspath(one[0]).startswith(own)]
    if not theirs:
        return ""
    paths = sysconfig.get_paths()
    installed = (paths["stdlib"], paths["platstdlib"])
    written = [one for one in theirs if not one[0].startswith(installed) and "-packages" + os.sep not in one[0]]
    filename, line, name = (written or theirs)[-1]
    return f"{os.path.basename(filename)}:{line} in {name}"
