"""What Keel's log costs: processor time of a `keel.log` call, and the share of an iteration of Stable-Baselines3 that the callback takes.

    python3 python/bench/callback_cost.py [--calls 2000] [--iterations 3]
"""

import argparse
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import keel

PARTS = ("_on_rollout_start", "_on_step", "_on_rollout_end", "_on_training_end")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--iterations", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        run = keel.start("cost", root=root)
        metrics = {f"loss/part{i}": i / 7 for i in range(12)}
        began = time.process_time()
        for step in range(options.calls):
            keel.log(step, metrics)
        print(f"keel.log, 12 metrics: {(time.process_time() - began) / options.calls * 1e6:.0f} us of processor time a call")
        run.close()
        try:
            import torch
            from stable_baselines3 import PPO
        except ImportError:
            print("Stable-Baselines3 is not installed: the callback is not measured")
            return
        torch.set_num_threads(1)
        for exact in (False, True):
            model = PPO("MlpPolicy", "CartPole-v1", seed=1, device="cpu")
            callback = keel.KeelCallback(root=root, exact_kl=exact)
            spent = [0.0]

            def timed(part):
                def call():
                    at = time.process_time()
                    found = part()
                    spent[0] += time.process_time() - at
                    return found

                return call

            for name in PARTS:
                setattr(callback, name, timed(getattr(callback, name)))
            began = time.process_time()
            model.learn(options.iterations * 2048, callback=callback)
            total = time.process_time() - began
            print(f"KeelCallback(exact_kl={exact}), PPO on CartPole-v1: {100 * spent[0] / total:.2f} % of the processor time of training")


if __name__ == "__main__":
    main()
