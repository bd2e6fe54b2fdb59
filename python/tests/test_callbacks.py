"""The callbacks: Stable-Baselines3's with the real library where it is there, transformers' with a stand-in that has its documented interface."""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
import types
import unittest
import uuid
import warnings

import keel

# STABLE_BASELINES3 names directories that have it and Gymnasium, where they are not installed.
_ELSEWHERE = [place for place in os.environ.get("STABLE_BASELINES3", "").split(os.pathsep) if place]
try:
    sys.path.extend(_ELSEWHERE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import stable_baselines3
        import torch
except ImportError:
    stable_baselines3 = None
finally:
    for _place in _ELSEWHERE:
        sys.path.remove(_place)


def rows_of(run):
    with open(os.path.join(run.directory, "metrics.jsonl")) as file:
        return [json.loads(line) for line in file]


class Scratch(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="keel-python-")
        self.addCleanup(shutil.rmtree, self.root, True)
        caught = warnings.catch_warnings()
        caught.__enter__()
        warnings.simplefilter("ignore")
        self.addCleanup(caught.__exit__, None, None, None)


@unittest.skipIf(stable_baselines3 is None, "Stable-Baselines3 is not installed")
class StableBaselines3(Scratch):
    def model(self, kind=None, **options):
        torch.set_num_threads(1)
        kind = kind or stable_baselines3.PPO
        return kind("MlpPolicy", **{"env": "CartPole-v1", "n_steps": 64, "seed": 1, "device": "cpu", **options})

    def test_a_row_tells_of_one_iteration_after_its_update(self):
        model = self.model()
        logged = []
        train = model.train

        def watched():
            train()
            logged.append(dict(model.logger.name_to_value))

        model.train = watched
        callback = keel.KeelCallback(framework="stable_baselines3", root=self.root)
        model.learn(256, callback=callback)
        rows = rows_of(callback.run)
        self.assertEqual([row["train/step"] for row in rows], [64, 128, 192, 256])
        for row, said in zip(rows, logged):
            self.assertAlmostEqual(row["kl/step_k3"], said["train/approx_kl"])
            self.assertAlmostEqual(row["policy/entropy"], -said["train/entropy_loss"])
            self.assertAlmostEqual(row["loss/value"], said["train/value_loss"])
            self.assertEqual(row["train/epochs_run"], 10)
            self.assertIn("episode/return", row)
        with open(os.path.join(callback.run.directory, "manifest.json")) as file:
            manifest = json.load(file)
        self.assertEqual((manifest["status"], manifest["algorithm"], manifest["environment"]["id"]), ("finished", "sb3-ppo", "CartPole-v1"))
        self.assertEqual((manifest["config"]["learningRate"], manifest["config"]["steps"]), (0.0003, 256))

    def test_its_exact_kl_is_that_over_the_observations_of_the_rollout(self):
        for envs in (1, 3):
            model = self.model(env=stable_baselines3.common.env_util.make_vec_env("CartPole-v1", n_envs=envs, seed=1))
            expected, train = [], model.train

            def watched():
                old = keel.snapshot(model.policy)
                seen = torch.from_numpy(model.rollout_buffer.observations.reshape(-1, 4).copy())
                train()
                expected.append(keel.mean_kl(model.policy, old, seen))

            model.train = watched
            callback = keel.KeelCallback(framework="stable_baselines3", root=self.root)
            model.learn(3 * 64 * envs, callback=callback)
            rows = rows_of(callback.run)
            self.assertEqual(len(rows), 3)
            for row, kl in zip(rows, expected):
                self.assertAlmostEqual(row["kl/step"] / kl, 1, places=5)

    def test_the_training_is_to_the_bit_what_it_is_without(self):
        with_it = self.model()  # seeds the one generator that both draw from
        with_it.learn(192, callback=keel.KeelCallback(framework="stable_baselines3", root=self.root))
        without = self.model()
        without.learn(192)
        for name, value in without.policy.state_dict().items():
            self.assertTrue(torch.equal(value, with_it.policy.state_dict()[name]), name)

    def test_the_page_changes_the_learning_rate_and_stops_it(self):
        model = self.model()
        callback = keel.KeelCallback(framework="stable_baselines3", root=self.root)

        class Page(stable_baselines3.common.callbacks.BaseCallback):
            def _on_step(page):
                if page.n_calls in (70, 200):
                    request = {"type": "set", "key": "learningRate", "value": 0.5e-4} if page.n_calls == 70 else {"type": "stop"}
                    inbox = os.path.join(callback.run.directory, "inbox")
                    os.makedirs(inbox, exist_ok=True)
                    with open(os.path.join(inbox, f"{uuid.uuid4()}.json"), "w") as file:
                        json.dump({**request, "by": "page"}, file)
                    callback.run._polled = 0.0  # half a second later
                return True

        model.learn(100_000, callback=[Page(), callback])
        rows = rows_of(callback.run)
        self.assertEqual([row["train/lr"] for row in rows], [0.0003, 0.5e-4, 0.5e-4])
        self.assertEqual(model.num_timesteps, 200)
        with open(os.path.join(callback.run.directory, "manifest.json")) as file:
            self.assertEqual(json.load(file)["reason"], "stopped by page")

    def test_guarded_ppo_holds_its_bound_where_ppo_does_not(self):
        far = {"learning_rate": 0.01, "n_steps": 128}
        callback = keel.KeelCallback(framework="stable_baselines3", root=self.root)
        self.model(**far).learn(512, callback=callback)
        self.assertGreater(max(row["kl/step"] for row in rows_of(callback.run)), 0.01)
        guarded = keel.KeelCallback(framework="stable_baselines3", root=self.root)
        model = self.model(keel.GuardedPPO, bound=0.01, **far)
        model.learn(512, callback=guarded)
        rows = rows_of(guarded.run)
        self.assertLessEqual(max(row["kl/step"] for row in rows), 0.01)
        self.assertTrue(any(row["guard/scale"] < 1 and row["kl/step_raw"] > 0.01 for row in rows))
        path = os.path.join(self.root, "model.zip")
        model.save(path)
        self.assertEqual(keel.GuardedPPO.load(path).bound, 0.01)

    def watched(self, spoil=lambda model: None, **options):
        """Trains with a look at each attempt: where it begins, with which rate, and where it ends."""
        attempts, train = [], stable_baselines3.PPO.train
        model = self.model(keel.GuardedPPO, **options)

        def state():
            weights = [value.detach().clone() for value in model.policy.parameters()]
            steps = [float(one["step"]) for one in model.policy.optimizer.state_dict()["state"].values()]
            return [weights, steps, model._n_updates]

        def attempt(self):
            attempts.append({"begins": state()})
            train(self)
            attempts[-1]["rate"] = self.policy.optimizer.param_groups[0]["lr"]
            spoil(self)

        stable_baselines3.PPO.train = attempt
        self.addCleanup(setattr, stable_baselines3.PPO, "train", train)
        return model, attempts, state

    def assertSame(self, one, other):
        self.assertEqual(one[1:], other[1:])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(one[0], other[0])))

    def test_an_update_that_went_far_is_done_again_from_where_it_began_at_a_rate_that_fits(self):
        model, attempts, _ = self.watched(learning_rate=0.1, n_steps=128, bound=0.01)
        while len(attempts) == len({one["begins"][2] for one in attempts}) and len(attempts) < 20:
            model.learn(128, reset_num_timesteps=False)
        updates = attempts[-1]["begins"][2]
        tried = [one for one in attempts if one["begins"][2] == updates]
        self.assertGreater(len(tried), 1)
        for one in tried[1:]:
            self.assertSame(one["begins"], tried[0]["begins"])
        rates = [one["rate"] for one in tried]
        self.assertTrue(all(later <= 0.7 * earlier for earlier, later in zip(rates, rates[1:])), rates)
        self.assertLessEqual(model.guarded.kl, 0.01)
        self.assertGreater(model.guarded.kl_raw, 0.01)
        self.assertEqual(model.logger.name_to_value["keel/guard_retries"], len(tried) - 1)
        self.assertAlmostEqual(model.logger.name_to_value["train/learning_rate"], rates[-1])
        # Where it may not try again it steps back, and the rate stays.
        once, tries, _ = self.watched(learning_rate=0.1, n_steps=128, bound=0.01, retries=0)
        while len(tries) < 20 and (once.guarded is None or once.guarded.scale == 1):
            once.learn(128, reset_num_timesteps=False)
        self.assertLess(once.guarded.scale, 1)
        self.assertEqual(len(tries), len({one["begins"][2] for one in tries}))
        self.assertEqual(once.rate_factor, 1)

    def test_an_update_that_came_to_no_number_is_taken_back_whole(self):
        def spoil(model):
            model.policy.value_net.weight.data[0, 0] = float("nan")

        model, attempts, state = self.watched(spoil, n_steps=64, bound=0.01)
        model.learn(64)
        self.assertEqual(len(attempts), 4)
        self.assertSame(state()[:2] + [0], attempts[0]["begins"])
        self.assertEqual((model.guarded.kl, model.guarded.scale), (0, 0))
        self.assertAlmostEqual(model.rate_factor, 1e-4)

    def test_wrong_bounds_and_retries_are_refused(self):
        for options in ({"bound": 0}, {"bound": float("nan")}, {"retries": -1}, {"retries": 1.5}):
            with self.assertRaisesRegex(ValueError, next(iter(options))):
                self.model(keel.GuardedPPO, **options)

    def test_a_root_that_cannot_be_written_does_not_touch_the_training(self):
        blocked = os.path.join(self.root, "file")
        open(blocked, "w").close()
        model = self.model()
        model.learn(128, callback=keel.KeelCallback(framework="stable_baselines3", root=os.path.join(blocked, "runs")))
        self.assertEqual(model.num_timesteps, 128)


class Transformers(Scratch):
    """TrainerCallback's documented events, with what Trainer hands over; no model is trained."""

    def setUp(self):
        super().setUp()
        for name in ("transformers", "keel._transformers"):
            before = sys.modules.pop(name, None)
            self.addCleanup(lambda name=name, before=before: sys.modules.pop(name, None) if before is None else sys.modules.__setitem__(name, before))
        stand_in = types.ModuleType("transformers")
        stand_in.TrainerCallback = type("TrainerCallback", (), {})
        sys.modules["transformers"] = stand_in

    def test_rows_names_and_controls(self):
        callback = keel.KeelCallback(framework="transformers", root=self.root)
        args = types.SimpleNamespace(learning_rate=1e-5, run_name="grpo", seed=4, beta=0.04, num_generations=8)
        state = types.SimpleNamespace(global_step=0, is_world_process_zero=True, max_steps=10)
        control = types.SimpleNamespace(should_training_stop=False)
        optimizer = types.SimpleNamespace(param_groups=[{"lr": 1e-5}, {"lr": 2e-5}])
        scheduler = types.SimpleNamespace(base_lrs=[1e-5, 2e-5])
        gave = {"optimizer": optimizer, "lr_scheduler": scheduler}
        callback.on_train_begin(args, state, control, model=None, **gave)
        for step in (1, 2):
            state.global_step = step
            callback.on_step_end(args, state, control, **gave)
            callback.on_log(args, state, control, logs={"loss": 0.1, "kl": 0.02, "reward": 1.5, "reward_std": 0.3, "rewards/format/mean": 1.0, "rewards/format/std": 0.1, "rewards/<lambda>/mean": 2.0, "epoch": 0.1, "completions/mean_length": 90.0})
        callback.on_log(args, state, control, logs={"eval_reward": 2.0, "epoch": 0.1})
        state.global_step = 3
        inbox = os.path.join(callback.run.directory, "inbox")
        os.makedirs(inbox)
        for request in ({"type": "set", "key": "learningRate", "value": 5e-6}, {"type": "stop"}):
            with open(os.path.join(inbox, f"{uuid.uuid4()}.json"), "w") as file:
                json.dump({**request, "by": "page"}, file)
        callback.run._polled = 0.0  # half a second later
        callback.on_step_end(args, state, control, **gave)
        callback.on_log(args, state, control, logs={"train_runtime": 3.0, "train_loss": 0.1})
        callback.on_train_end(args, state, control)
        rows = rows_of(callback.run)
        self.assertEqual([row["train/step"] for row in rows], [1, 2, 2])
        first = {name: value for name, value in rows[0].items() if not name.startswith(("time/", "train/"))}
        self.assertEqual(first, {"completion/length": 90, "kl/ref_k3": 0.02, "loss/total": 0.1, "reward/group_std": 0.3, "reward/mean": 1.5, "reward/part/format": 1, "reward/part/_lambda_": 2})
        self.assertEqual(rows[2]["eval/return"], 2)
        self.assertTrue(control.should_training_stop)
        self.assertAlmostEqual(optimizer.param_groups[1]["lr"], 1e-5)
        self.assertAlmostEqual(scheduler.base_lrs[0], 5e-6)

    def test_the_spread_of_a_reward_is_named_for_what_it_is_over(self):
        callback = keel.KeelCallback(framework="transformers", root=self.root)
        state = types.SimpleNamespace(global_step=1)
        callback.on_train_begin(types.SimpleNamespace(), state, None)
        callback.on_log(None, state, None, logs={"loss": 1, "reward_std": 0.2})
        callback.on_log(None, state, None, logs={"loss": 1, "reward_std": 0.3, "frac_reward_zero_std": 0.0})
        rows = rows_of(callback.run)
        self.assertEqual([row.get("reward/group_std") for row in rows], [0.2, None])
        self.assertEqual([row.get("reward/std") for row in rows], [None, 0.3])
        callback.on_train_end(None, state, None)

    def test_only_the_main_process_writes(self):
        callback = keel.KeelCallback(framework="transformers", root=self.root)
        state = types.SimpleNamespace(is_world_process_zero=False, global_step=1)
        callback.on_train_begin(types.SimpleNamespace(), state, None)
        callback.on_log(None, state, None, logs={"loss": 1})
        self.assertEqual(os.listdir(self.root), [])


_TRAINER = all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers", "accelerate"))


@unittest.skipUnless(_TRAINER, "transformers with torch and accelerate is not installed")
class RealTrainer(Scratch):
    """The Trainer of transformers itself, with a line of one parameter."""

    def trainer(self, callbacks, steps):
        import torch as pytorch
        import transformers

        class Line(pytorch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slope = pytorch.nn.Parameter(pytorch.zeros(1))

            def forward(self, x, labels):
                found = self.slope * x
                return {"loss": ((found - labels) ** 2).mean(), "logits": found}

        rows = [{"x": [i / 8], "labels": [i / 4]} for i in range(16)]
        settings = {"max_steps": steps, "per_device_train_batch_size": 4, "learning_rate": 0.1, "logging_steps": 1, "eval_strategy": "steps", "eval_steps": 4}
        quiet = {"output_dir": os.path.join(self.root, "out"), "report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "log_level": "error"}
        arguments = transformers.TrainingArguments(**settings, **quiet)
        trainer = transformers.Trainer(model=Line(), args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=callbacks)
        trainer.remove_callback(transformers.PrinterCallback)
        return trainer

    def test_rows_are_what_it_logs(self):
        callback = keel.KeelCallback(framework="transformers", root=self.root, name="line")
        trainer = self.trainer([callback], 8)
        trainer.train()
        rows = rows_of(callback.run)
        logged = [said for said in trainer.state.log_history if "loss" in said]
        trained = [row for row in rows if "loss/total" in row]
        self.assertEqual([row["train/step"] for row in trained], list(range(1, 9)))
        for row, said in zip(trained, logged):
            for ours, theirs in (("loss/total", "loss"), ("train/lr", "learning_rate"), ("grad/norm", "grad_norm")):
                self.assertAlmostEqual(row[ours], said[theirs])
        self.assertEqual([row["train/step"] for row in rows if "eval_loss" in row or "own/eval_loss" in row], [4, 8])
        with open(os.path.join(callback.run.directory, "manifest.json")) as file:
            manifest = json.load(file)
        self.assertEqual((manifest["status"], manifest["step"], manifest["config"]["learningRate"], manifest["config"]["steps"]), ("finished", 8, 0.1, 8))

    def test_the_page_changes_its_rate_which_keeps_its_schedule_and_stops_it(self):
        import transformers

        callback = keel.KeelCallback(framework="transformers", root=self.root)

        class Page(transformers.TrainerCallback):
            def on_step_end(page, args, state, control, **more):
                asked = {3: {"type": "set", "key": "learningRate", "value": 0.01}, 6: {"type": "stop"}}.get(state.global_step)
                if asked is not None:
                    inbox = os.path.join(callback.run.directory, "inbox")
                    os.makedirs(inbox, exist_ok=True)
                    with open(os.path.join(inbox, f"{uuid.uuid4()}.json"), "w") as file:
                        json.dump({**asked, "by": "page"}, file)
                    callback.run._polled = 0.0  # half a second later

        trainer = self.trainer([Page(), callback], 10)
        trainer.train()
        rates = {row["train/step"]: row["train/lr"] for row in rows_of(callback.run) if "train/lr" in row}
        self.assertEqual(max(rates), 6)
        del rates[3]  # which it was asked in: its own rate, or that of the next step, as the version has it
        for step, rate in rates.items():
            # It falls from its beginning to 0.
            begins = 0.1 if step < 3 else 0.01
            self.assertIn(round(rate / begins, 6), (round(1 - step / 10, 6), round(1.1 - step / 10, 6)))
        with open(os.path.join(callback.run.directory, "manifest.json")) as file:
            self.assertEqual(json.load(file)["reason"], "stopped by page")


if __name__ == "__main__":
    unittest.main()
