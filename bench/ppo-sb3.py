"""Stable-Baselines3's PPO in one of the settings of bench/ppo.ts: prints its steps a second, warm-up left out.

python ppo-sb3.py ENV ENVS STEPS BATCH EPOCHS TOTAL
"""
import json
import sys
import time

import torch
from stable_baselines3 import PPO, __version__
from stable_baselines3.common.env_util import make_vec_env

env, (envs, steps, batch, epochs, total) = sys.argv[1], map(int, sys.argv[2:])
torch.set_num_threads(1)
model = PPO(
    "MlpPolicy", make_vec_env(env, n_envs=envs), n_steps=steps, batch_size=batch, n_epochs=epochs,
    device="cpu", policy_kwargs={"net_arch": [64, 64]},
)
model.learn(2 * envs * steps)
start = time.perf_counter()
model.learn(total)
print(json.dumps({
    "steps_per_second": round(total / (time.perf_counter() - start)),
    "sb3": __version__, "torch": torch.__version__,
}))
