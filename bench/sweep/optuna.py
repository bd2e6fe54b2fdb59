"""Optuna's TPE on the functions of bench/sweep/functions.ts, which are written here once more.

Reads a JSON object from stdin: {function, space, seeds, trials, multivariate}. Prints for each seed a JSON line with the best
value and where it is; the space is that of the function there, so that both search the same.
"""
import json
import math
import sys
import time

import optuna

SHIFT = [1.3, -2.1, 0.7, 3.2, -0.4]
ALPHA = [1.0, 1.2, 3.0, 3.2]
A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [
    [1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
    [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381],
]


def xs(p):
    return [p[f"x{i}"] for i in range(len(p))]


def sphere(p):
    return sum((x - s) ** 2 for x, s in zip(xs(p), SHIFT))


def branin(p):
    x, y = xs(p)
    a, b, c, r, s, t = 1, 5.1 / (4 * math.pi**2), 5 / math.pi, 6, 10, 1 / (8 * math.pi)
    return a * (y - b * x**2 + c * x - r) ** 2 + s * (1 - t) * math.cos(x) + s


def rosenbrock(p):
    x = xs(p)
    return sum(100 * (b - a**2) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def hartmann6(p):
    x = xs(p)
    return -sum(
        ALPHA[i] * math.exp(-sum(A[i][j] * (x[j] - 1e-4 * P[i][j]) ** 2 for j in range(6))) for i in range(4)
    )


def rastrigin(p):
    return sum(10 + (x - s) ** 2 - 10 * math.cos(2 * math.pi * (x - s)) for x, s in zip(xs(p), SHIFT))


def conditions(p):
    if p["optimizer"] == "adam":
        value = (math.log10(p["rate"]) + 3) ** 2 + 0.1 * (math.log10(p["epsilon"]) + 7) ** 2
    else:
        value = 0.3 + (math.log10(p["rate"]) + 1.5) ** 2 + 4 * (p["momentum"] - 0.9) ** 2
    value += 0.25 * (p["layers"] - 3) ** 2 + 0.25 * (math.log2(p["width"]) - 7) ** 2
    value += {32: 0.3, 64: 0.0, 128: 0.1, 256: 0.5}[p["batch"]]
    return value + 10 * (p["dropout"] - 0.15) ** 2


FUNCTIONS = {f.__name__: f for f in (sphere, branin, rosenbrock, hartmann6, rastrigin, conditions)}


def suggest(trial, space):
    params = {}
    for axis in space:
        key, domain, when = axis["key"], axis["domain"], axis.get("when")
        if when is not None and params.get(when["key"]) not in when["in"]:
            continue
        if domain["kind"] == "choice":
            params[key] = trial.suggest_categorical(key, domain["values"])
        elif domain["kind"] == "int":
            params[key] = trial.suggest_int(key, domain["low"], domain["high"], step=domain["step"], log=domain["log"])
        else:
            params[key] = trial.suggest_float(
                key, domain["low"], domain["high"], step=domain.get("step"), log=domain["log"]
            )
    return params


def main():
    job = json.load(sys.stdin)
    function, space = FUNCTIONS[job["function"]], job["space"]
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for seed in job["seeds"]:
        # The settings are Optuna's defaults; multivariate warns that it is experimental, and of conditions.
        sampler = optuna.samplers.TPESampler(
            seed=seed, **({"multivariate": True, "warn_independent_sampling": False} if job["multivariate"] else {})
        )
        study = optuna.create_study(sampler=sampler)
        start = time.process_time()
        study.optimize(lambda trial: function(suggest(trial, space)), n_trials=job["trials"])
        print(json.dumps({
            "seed": seed, "value": study.best_value, "params": study.best_params,
            "seconds": round(time.process_time() - start, 2), "optuna": optuna.__version__,
        }), flush=True)


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    main()
