"""Stable-Baselines3's PPO with a learning rate that is 30 times too high, with and without Keel's guard. What docs/results.md quotes.

    python3 python/bench/guarded_ppo.py [--env CartPole-v1 …] [--seeds 1000 …] [--bound 0.05] [--factor 30] [--out results.jsonl]

Needs Stable-Baselines3, Gymnasium and torch. Runs that --out has already are not made again. One line of JSON a run; the score is the mean return of
20 episodes of seeds of their own after training, by the most likely actions.
"""

import argparse
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

# Steps, the learning rate that suits, environments at once, and the rest: as RL Baselines3 Zoo has tuned them, without schedules and gSDE.
TASKS = {
    "CartPole-v1": (50_000, 1e-3, 8, {"n_steps": 32, "batch_size": 256, "n_epochs": 20, "gamma": 0.98, "gae_lambda": 0.8}),
    "Pendulum-v1": (100_000, 1e-3, 4, {"n_steps": 1024, "gamma": 0.9}),
}


def run(env_id: str, seed: int, factor: float, bound: "float | None") -> dict:
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    from keel import GuardedPPO

    torch.set_num_threads(1)
    steps, rate, envs, settings = TASKS[env_id]
    options = dict(policy="MlpPolicy", env=make_vec_env(env_id, n_envs=envs, seed=seed), seed=seed, learning_rate=rate * factor, device="cpu", **settings)
    began = time.process_time()
    failed = None
    model = PPO(**options) if bound is None else GuardedPPO(bound=bound, **options)
    try:
        model.learn(steps)
    except ValueError as error:  # torch refuses a distribution of what is no number
        failed = str(error).splitlines()[0][:80]
    seconds = time.process_time() - began
    score = None
    if failed is None:
        env = Monitor(gymnasium.make(env_id))
        env.reset(seed=1_000_000 + seed)
        score, _ = evaluate_policy(model, env, n_eval_episodes=20, deterministic=True)
    return {"env": env_id, "seed": seed, "factor": factor, "bound": bound, "score": score, "failed": failed, "cpuSeconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1000, 1005)))
    parser.add_argument("--factor", type=float, default=30)
    parser.add_argument("--bound", type=float, default=0.05)
    parser.add_argument("--out", default="guarded-ppo.jsonl")
    options = parser.parse_args()
    done = []
    if os.path.exists(options.out):
        with open(options.out) as file:
            done = [json.loads(line) for line in file]
    for env_id in options.env:
        for seed in options.seeds:
            for bound in (None, options.bound):
                key = {"env": env_id, "seed": seed, "factor": options.factor, "bound": bound}
                if any(all(row[name] == value for name, value in key.items()) for row in done):
                    continue
                row = run(env_id, seed, options.factor, bound)
                done.append(row)
                with open(options.out, "a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    print(f"\n| environment | PPO, learning rate × {options.factor:g} | GuardedPPO, bound {options.bound:g} |\n|---|---|---|")
    for env_id in options.env:
        cells = [cell([row for row in done if row["env"] == env_id and row["factor"] == options.factor and row["bound"] == bound]) for bound in (None, options.bound)]
        print(f"| {env_id} | {cells[0]} | {cells[1]} |")


def cell(rows: "list[dict]") -> str:
    scores = [row["score"] for row in sorted(rows, key=lambda row: row["seed"])]
    there = [score for score in scores if score is not None]
    each = ", ".join("NaN" if score is None else f"{score:.0f}" for score in scores)
    return f"{statistics.mean(there):.0f} ({each})" if there else each


if __name__ == "__main__":
    main()
