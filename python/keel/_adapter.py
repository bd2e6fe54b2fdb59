"""An environment with Gymnasium's API, whichever version of it, as Keel's server uses one."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from keel import _flat, _plain

Config = Dict[str, Any]


class Missing(Exception):
    """A package is not installed; `package` is what pip calls it."""

    def __init__(self, package: str, text: str) -> None:
        super().__init__(text)
        self.package = package


class WrongEnvironment(Exception):
    """What was named is no environment with Gymnasium's API; the text says why and what to do."""


#: Where pip has another name than `import`.
_PIP_NAMES = {"cv2": "opencv-python", "yaml": "pyyaml", "PIL": "pillow", "sklearn": "scikit-learn", "skimage": "scikit-image"}
#: Wrappers that keep nothing that the future depends on, once the limit is Keel's.
_STATELESS = ("OrderEnforcing", "PassiveEnvChecker", "TimeLimit")
#: Those of them that do nothing in a step that Keel does not do itself.
_IDLE = ("OrderEnforcing", "TimeLimit")


def _missing(error: ImportError) -> Missing:
    top = (error.name or "").split(".")[0]
    return Missing(_PIP_NAMES.get(top, top), str(error))


def _module_of(config: Config) -> Any:
    """The user's file as a module, its folder where Python looks first, as for a script."""
    path = config["file"]
    name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == path:
        return loaded
    if loaded is not None:
        name = f"{name}_environment"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WrongEnvironment(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _looks_like_one(value: Any) -> bool:
    return isinstance(value, type) and all(callable(getattr(value, name, None)) for name in ("reset", "step"))


def _from_file(config: Config, args: Dict[str, Any]) -> Any:
    module = _module_of(config)
    name = config["name"]
    make = getattr(module, name, None)
    if make is None:
        here = [key for key, value in vars(module).items() if _looks_like_one(value) and value.__module__ == module.__name__]
        has = f"it has {', '.join(here)}" if here else "it has no class with reset and step"
        raise WrongEnvironment(f"{config['file']} has no {name}: {has}")
    if not callable(make):
        raise WrongEnvironment(
            f"{name} in {config['file']} is of the type {type(make).__name__}: name a class, or a function that makes one"
        )
    if config.get("render") and "render_mode" not in args:
        try:
            parameters = inspect.signature(make).parameters.values()
        except (TypeError, ValueError):
            parameters = ()  # type: ignore[assignment]
        if any(p.name == "render_mode" or p.kind is p.VAR_KEYWORD for p in parameters):
            args = {**args, "render_mode": "rgb_array"}
    return make(**args)


def _from_gymnasium(config: Config, args: Dict[str, Any]) -> Any:
    name = config["gym"]
    try:
        gymnasium = importlib.import_module("gymnasium")
    except ImportError as error:
        if error.name != "gymnasium":
            raise
        try:
            gymnasium = importlib.import_module("gym")
        except ImportError:
            raise _missing(error) from None
    if ":" in name and os.getcwd() not in sys.path:
        # `module:Id`, whose module may be beside the user: behind all others, so that it hides none.
        sys.path.append(os.getcwd())
    if config.get("render"):
        args = {"render_mode": "rgb_array", **args}
    # Every call is checked on Keel's side.
    try:
        return gymnasium.make(name, disable_env_checker=True, **args)
    except TypeError as error:
        if "disable_env_checker" not in str(error):
            raise
        return gymnasium.make(name, **args)


class Hosted:
    """One environment. Keel begins its episodes and cuts them: wrappers that do so themselves are switched off or refused."""

    def __init__(self, config: Config) -> None:
        args = config.get("args") or {}
        try:
            self.env = _from_gymnasium(config, args) if "gym" in config else _from_file(config, args)
        except ModuleNotFoundError as error:
            raise _missing(error) from error
        except Exception as error:
            # Gymnasium's own, such as of `gym:Hopper-v5` without MuJoCo; its text says what to install.
            if type(error).__name__ == "DependencyNotInstalled":
                raise Missing("", str(error)) from error
            raise
        env = self.env
        for name in ("reset", "step"):
            if not callable(getattr(env, name, None)):
                raise WrongEnvironment(f"a {type(env).__name__} has no {name}(): Gymnasium's API is needed")
        for name in ("observation_space", "action_space"):
            if getattr(env, name, None) is None:
                raise WrongEnvironment(f"a {type(env).__name__} has no {name}: set one, such as spaces.Box(-1, 1, (3,))")
        self.observations = _flat.observations(env.observation_space)
        self.actions = _flat.actions(env.action_space)
        self.limit = self._take_limit()
        self.info_names: Sequence[str] = config.get("info") or ()
        self._inner = self._innermost()
        self._stepping = self._below_idle()
        self._read = self.actions.read
        self.write = self.observations.write
        self.has_state = all(callable(getattr(type(self._inner), name, None)) for name in ("get_state", "set_state"))
        self._seeding = self._how_to_seed()
        self._missed_info = False

    # ---- what is found out once

    def _layers(self) -> List[Any]:
        layers = [self.env]
        while len(layers) < 64:
            below = layers[-1].__dict__.get("env") if hasattr(layers[-1], "__dict__") else None
            if below is None or not callable(getattr(below, "step", None)):
                break
            layers.append(below)
        return layers

    def _take_limit(self) -> Optional[int]:
        """The limit of Gymnasium's wrapper, which Keel keeps from here on: so that it is part of what is saved."""
        limits = []
        for layer in self._layers():
            name = type(layer).__name__
            if "autoreset" in name.lower():
                raise WrongEnvironment(f"the wrapper {name} begins episodes by itself, which Keel does: leave it out")
            steps = getattr(layer, "_max_episode_steps", None) if name == "TimeLimit" else None
            if isinstance(steps, int) and steps > 0:
                limits.append(steps)
                layer._max_episode_steps = sys.maxsize
        return min(limits, default=None)

    def _innermost(self) -> Any:
        """What `get_state` is asked of: below wrappers that have nothing to save."""
        for layer in self._layers():
            if hasattr(type(layer), "get_state") or type(layer).__name__ not in _STATELESS:
                return layer
        return self.env

    def _below_idle(self) -> Any:
        """What is stepped: below wrappers of Gymnasium's that only pass a step on, which takes time."""
        for layer in self._layers():
            made_by = type(layer).__module__.split(".")[0]
            if type(layer).__name__ not in _IDLE or made_by not in ("gymnasium", "gym"):
                return layer
        return self.env

    def _how_to_seed(self) -> str:
        try:
            parameters = inspect.signature(self.env.reset).parameters.values()
        except (TypeError, ValueError):
            return "argument"
        if any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in parameters):
            return "argument"
        return "method" if callable(getattr(self.env, "seed", None)) else "none"

    def describe(self) -> Dict[str, Any]:
        metadata = getattr(self.env, "metadata", None) or {}
        fps = metadata.get("render_fps") or metadata.get("video.frames_per_second")
        modes = metadata.get("render_modes") or metadata.get("render.modes") or ()
        return {
            "observation": self.observations.space,
            "action": self.actions.space,
            "limit": self.limit,
            "hasState": self.has_state,
            "seeding": self._seeding,
            "renders": callable(getattr(self.env, "render", None)) and "rgb_array" in modes,
            "fps": float(fps) if isinstance(fps, (int, float)) and fps > 0 else None,
        }

    # ---- episodes

    def reset(self, seed: Optional[int]) -> Any:
        env = self.env
        if seed is None or self._seeding == "none":
            found = env.reset()
        elif self._seeding == "argument":
            found = env.reset(seed=seed)
        else:
            env.seed(seed)
            found = env.reset()
        # Since version 0.26 an observation and a dictionary; before that the observation alone.
        if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], dict) and not self._is_pair(found):
            return found[0]
        return found

    def _is_pair(self, found: Any) -> bool:
        """Whether the observations themselves are pairs that end with a dictionary."""
        space = self.env.observation_space
        if _flat.kind_of(space) != "Tuple" or len(space.spaces) != 2 or _flat.kind_of(space.spaces[1]) != "Dict":
            return False
        first = found[0]
        return not (isinstance(first, tuple) and len(first) == 2)

    def step(self, row: Any) -> Tuple[Any, float, bool, bool, Any]:
        found = self._stepping.step(self._read(row))
        if type(found) is tuple and len(found) == 5:
            observation, reward, terminated, truncated, info = found
        else:
            observation, reward, terminated, truncated, info = self._five(found)
        if type(reward) is not float:
            reward = _float(reward)
        if terminated is not True and terminated is not False:
            terminated = _flag(terminated, "terminated")
        if truncated is not True and truncated is not False:
            truncated = _flag(truncated, "truncated")
        return observation, reward, terminated, truncated, info

    def _five(self, found: Any) -> Sequence[Any]:
        """What `step` gave of the old API, or a tuple of a kind of its own."""
        if isinstance(found, tuple) and len(found) == 5:
            return found
        if isinstance(found, tuple) and len(found) == 4:
            observation, reward, done, info = found
            cut = isinstance(info, dict) and info.get("TimeLimit.truncated", False)
            return (observation, reward, False, True, info) if done and cut else (observation, reward, done, False, info)
        size = f"a tuple of {len(found)}" if isinstance(found, tuple) else f"a {type(found).__name__}"
        raise WrongEnvironment(f"step() gave {size}: return observation, reward, terminated, truncated, info")

    def measure(self, info: Any, out: Any, at: int) -> None:
        """The numbers of `info` that are logged; NaN where one is not there."""
        for i, name in enumerate(self.info_names):
            value: Any = info
            if isinstance(info, dict) and name in info:
                value = info[name]
            else:
                for part in name.split("."):
                    value = value.get(part) if isinstance(value, dict) else None
            try:
                out[at + i] = float("nan") if value is None else float(value)
            except (TypeError, ValueError):
                out[at + i] = float("nan")

    # ---- states

    def state(self) -> str:
        generator = self._generator()
        return _plain.dumps({"state": self._inner.get_state(), "generator": generator and generator.state})

    def restore(self, text: str) -> None:
        saved = _plain.loads(text)
        if not isinstance(saved, dict) or "state" not in saved:
            raise ValueError("this is no state that an environment gave")
        # Makes what a reset makes, and tells wrappers that there was one.
        self.reset(0)
        self._inner.set_state(saved["state"])
        generator = self._generator()
        if generator is not None and saved.get("generator") is not None:
            generator.state = saved["generator"]

    def _generator(self) -> Any:
        found = getattr(getattr(self._inner, "np_random", None), "bit_generator", None)
        return found if hasattr(found, "state") else None

    def render(self) -> Any:
        """(height, width, 3) of bytes."""
        from keel._flat import np

        picture = self.env.render()
        if isinstance(picture, list):
            picture = picture[-1] if picture else None
        if np is None or picture is None:
            raise WrongEnvironment(f"render() gave {picture!r}, no picture: make it with render_mode='rgb_array'")
        picture = np.asarray(picture)
        if picture.ndim != 3 or picture.shape[2] not in (3, 4) or picture.dtype != np.uint8 or picture.size == 0:
            raise WrongEnvironment(
                f"render() gave {picture.dtype} of the shape {picture.shape}: return uint8 of (height, width, 3)"
            )
        return np.ascontiguousarray(picture[:, :, :3])

    def close(self) -> None:
        close = getattr(self.env, "close", None)
        if callable(close):
            close()


def _float(reward: Any) -> float:
    try:
        return float(reward)
    except (TypeError, ValueError):
        raise WrongEnvironment(f"the reward is {reward!r}: return a number") from None


def _flag(value: Any, what: str) -> bool:
    if type(value).__name__ in ("bool_", "bool") or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise WrongEnvironment(f"{what} is {value!r}: return True or False")
