"""Plays environments of every_space.py without the bridge: reads actions and seeds, writes what came of them as numbers.

python direct.py FOLDER: FOLDER/<case>.json has {"seeds": […], "actions": [[…]]}, FOLDER/<case>.out gets float64.
"""
import json
import os
import sys

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(__file__), "../../../../python")]
import every_space
import numpy as np

for case in every_space.CASES:
    path = os.path.join(sys.argv[1], case.__name__)
    with open(f"{path}.json") as file:
        told = json.load(file)
    seeds = iter(told["seeds"])
    env = case()
    out = []
    seen, _ = env.reset(seed=next(seeds))
    out.extend(env.flat(seen).astype("float64"))
    for row in told["actions"]:
        seen, reward, terminated, truncated, _ = env.step(env.native(np.array(row, dtype="float32")))
        out.extend(env.flat(seen).astype("float64"))
        out.extend([reward, float(terminated), float(truncated and not terminated)])
        if terminated or truncated:
            seen, _ = env.reset(seed=next(seeds))
            out.extend(env.flat(seen).astype("float64"))
    np.array(out, dtype="float64").tofile(f"{path}.out")
