"""
Makes the models of this folder with the real libraries: Stable-Baselines3 2.4.1, Gymnasium 1.0.0 and PyTorch 1.13.

    python3 make-models.py            # in this folder
    python3 make-models.py 1000       # asks for more observations

Each is trained for a moment, saved, and asked for actions, log-probabilities and values on 40 observations. Of `data` the
fields that Keel reads are kept; functions become the name of one, because their pickles hold byte code. The tensors, the
spaces and the normaliser are as the libraries wrote them.
"""

import base64
import json
import pickle
import sys
import zipfile

import gymnasium as gym
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 40

KEPT = """policy_class policy_kwargs observation_space action_space num_timesteps seed learning_rate use_sde n_envs n_steps
gamma gae_lambda ent_coef vf_coef max_grad_norm batch_size n_epochs clip_range clip_range_vf normalize_advantage
target_kl""".split()


class Switches(gym.Env):
    observation_space = spaces.Box(-1, 1, (2, 3), np.float32)
    action_space = spaces.MultiDiscrete([3, 2, 4])

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), float(action[0] == 1), self.steps >= 20, False, {}


def slim(path):
    """Keeps what is read, packed."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.endswith((".pth", "_version"))}
        data = json.loads(archive.read("data"))
    kept = {}
    for name in KEPT:
        if name not in data:
            continue
        field = data[name]
        if isinstance(field, dict) and "function" in str(field.get(":type:")):
            field = {":type:": field[":type:"], ":serialized:": base64.b64encode(pickle.dumps(len)).decode()}
        elif isinstance(field, dict) and ":serialized:" in field:
            field = {key: field[key] for key in (":type:", ":serialized:")}
        kept[name] = field
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", json.dumps(kept))
        for name, content in files.items():
            archive.writestr(name, content)


def said(name, observations, predicted, sample, log_prob, values):
    rows = len(observations)
    flat = lambda x: np.asarray(x, dtype=np.float64).reshape(rows, -1).tolist()
    with open(f"{name}.json", "w") as file:
        json.dump(
            dict(
                observations=flat(observations),
                actions=flat(predicted),
                samples=flat(sample),
                logProbs=np.asarray(log_prob, dtype=np.float64).flatten().tolist(),
                values=np.asarray(values, dtype=np.float64).flatten().tolist(),
            ),
            file,
        )


def save(name, model, normalise=None, scale=1.0):
    model.save(f"{name}.zip")
    slim(f"{name}.zip")
    if normalise is not None:
        normalise.save(f"{name}-vecnormalize.pkl")
    raw = (np.random.default_rng(7).normal(size=(ROWS,) + model.observation_space.shape) * scale).astype(np.float32)
    seen = raw if normalise is None else normalise.normalize_obs(raw.copy())
    tensor = th.as_tensor(seen).float()
    with th.no_grad():
        sample = model.policy.get_distribution(tensor).get_actions()
        values, log_prob, _ = model.policy.evaluate_actions(tensor, sample)
    said(name, raw, model.predict(seen, deterministic=True)[0], sample, log_prob, values)


def cleanrl():
    """The modules that CleanRL's ppo_continuous_action.py has, under its names."""
    layers = lambda out: th.nn.Sequential(
        th.nn.Linear(3, 16), th.nn.Tanh(), th.nn.Linear(16, 16), th.nn.Tanh(), th.nn.Linear(16, out)
    )
    agent = th.nn.Module()
    agent.critic, agent.actor_mean = layers(1), layers(1)
    agent.actor_logstd = th.nn.Parameter(th.full((1, 1), -0.3))
    th.save(agent.state_dict(), "agent.cleanrl_model")
    observations = th.randn(ROWS, 3)
    with th.no_grad():
        mean = agent.actor_mean(observations)
        normal = th.distributions.Normal(mean, agent.actor_logstd.expand_as(mean).exp())
        sample = normal.sample()
        said("agent", observations, mean, sample, normal.log_prob(sample).sum(1), agent.critic(observations))


if __name__ == "__main__":
    th.set_num_threads(1)
    th.manual_seed(5)
    small = dict(device="cpu", seed=1)
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", 4, seed=1), n_steps=64, policy_kwargs=dict(net_arch=[16, 16]), **small)
    save("ppo-cartpole", model.learn(2048))
    normalise = VecNormalize(make_vec_env("Pendulum-v1", 2, seed=2), gamma=0.9)
    arch = dict(net_arch=dict(pi=[12, 8], vf=[16]), activation_fn=th.nn.ReLU, log_std_init=-0.5)
    model = PPO("MlpPolicy", normalise, n_steps=96, batch_size=50, gamma=0.9, learning_rate=lambda left: 1e-3 * (1 + left), policy_kwargs=arch, **small)
    save("ppo-pendulum", model.learn(768), normalise, scale=3.0)
    model = PPO("MlpPolicy", make_vec_env(Switches, 2, seed=4), n_steps=64, policy_kwargs=dict(net_arch=[8]), **small)
    save("ppo-switches", model.learn(256))
    arch = dict(net_arch=[12], activation_fn=th.nn.GELU)
    model = A2C("MlpPolicy", make_vec_env("Pendulum-v1", 2, seed=4), policy_kwargs=arch, **small)
    save("a2c-pendulum", model.learn(500))
    model = PPO("MlpPolicy", make_vec_env("Pendulum-v1", 1), n_steps=64, use_sde=True, policy_kwargs=dict(net_arch=[4]), **small)
    save("sde", model)
    cleanrl()
