"""The guard for torch policies, against closed forms written out here in plain numbers."""

import math
import unittest

from keel._search import search

try:
    import torch
    from torch import distributions as td
    from torch import nn

    import keel
    from keel import _kl
except ImportError:
    torch = None  # type: ignore[assignment]


class Search(unittest.TestCase):
    def test_leaves_what_is_within_the_bound(self):
        found = search(0.005, 0.01, lambda share: self.fail("nothing to look for"))
        self.assertEqual(found, (1.0, 0.005, 0.005, 0))

    def test_uses_at_least_half_of_the_bound(self):
        for times in (1.001, 10, 1e3, 1e6):
            raw = 0.01 * times
            found = search(raw, 0.01, lambda share: raw * share * share)
            self.assertLessEqual(found.kl, 0.01)
            self.assertGreater(found.kl, 0.0049)
            self.assertAlmostEqual(found.kl, raw * found.scale**2, places=12)

    def test_takes_all_back_where_nothing_is_a_number(self):
        found = search(math.nan, 0.01, lambda share: math.nan)
        self.assertEqual((found.scale, found.kl, found.backtracks), (0.0, 0.0, 40))


if torch is not None:

    class Hybrid(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean, self.kind, self.pressed = nn.Linear(3, 2), nn.Linear(3, 4), nn.Linear(3, 2)
            self.log_std = nn.Parameter(torch.zeros(2))

        def forward(self, rows):
            return {
                "arm": td.Independent(td.Normal(self.mean(rows), self.log_std.exp().expand(len(rows), 2)), 1),
                "kind": td.Categorical(logits=self.kind(rows)),
                "pressed": td.Bernoulli(logits=self.pressed(rows)),
            }


@unittest.skipIf(torch is None, "torch is not installed")
class Guard(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        torch.set_num_threads(1)
        self.policy = Hybrid()
        self.rows = torch.randn(300, 3)
        self.old = keel.snapshot(self.policy)

    def move(self, by):
        with torch.no_grad():
            for parameter in self.policy.parameters():
                parameter.add_(by * torch.randn_like(parameter))

    def by_hand(self):
        """The same KL in plain Python, term by term."""
        now = keel.snapshot(self.policy)

        def outputs(parameters):
            rows = [[float(x) for x in row] for row in self.rows]

            def linear(name):
                weight, bias = parameters[f"{name}.weight"].tolist(), parameters[f"{name}.bias"].tolist()
                return [[sum(w * x for w, x in zip(weights, row)) + b for weights, b in zip(weight, bias)] for row in rows]

            return linear("mean"), parameters["log_std"].tolist(), linear("kind"), linear("pressed")

        (m0, s0, c0, b0), (m1, s1, c1, b1) = outputs(self.old), outputs(now)
        total = 0.0
        for i in range(len(self.rows)):
            for j in range(2):
                total += s1[j] - s0[j] + (math.exp(2 * s0[j]) + (m0[i][j] - m1[i][j]) ** 2) / (2 * math.exp(2 * s1[j])) - 0.5
                p, q = (1 / (1 + math.exp(-x)) for x in (b0[i][j], b1[i][j]))
                total += p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
            z0, z1 = (sum(math.exp(x) for x in c) for c in (c0[i], c1[i]))
            total += sum(math.exp(x) / z0 * (x - math.log(z0) - y + math.log(z1)) for x, y in zip(c0[i], c1[i]))
        return total / len(self.rows)

    def test_kl_is_that_of_the_closed_forms(self):
        for by in (0.01, 0.3, 1.0):
            self.move(by)
            self.assertAlmostEqual(keel.mean_kl(self.policy, self.old, self.rows, at_once=64) / self.by_hand(), 1, places=4)

    def test_holds_the_bound_by_a_step_back_on_the_line(self):
        self.move(0.5)
        new = keel.snapshot(self.policy)
        raw = self.by_hand()
        found = keel.guard(self.policy, self.old, self.rows, 0.02)
        self.assertAlmostEqual(found.kl_raw / raw, 1, places=4)
        self.assertLessEqual(self.by_hand(), 0.02)
        self.assertGreater(found.kl, 0.0099)
        for name, value in self.policy.named_parameters():
            torch.testing.assert_close(value.detach(), self.old[name] + (new[name] - self.old[name]) * found.scale)

    def test_leaves_a_small_update_to_the_bit(self):
        self.move(0.001)
        new = keel.snapshot(self.policy)
        self.assertEqual(keel.guard(self.policy, self.old, self.rows, 0.02).scale, 1)
        for name, value in self.policy.named_parameters():
            self.assertTrue(torch.equal(value, new[name]))

    def test_an_update_to_nan_is_taken_back(self):
        self.policy.mean.weight.data[0, 0] = math.nan
        self.assertEqual(keel.guard(self.policy, self.old, self.rows, 0.02).scale, 0)
        self.assertTrue(torch.equal(self.policy.mean.weight, self.old["mean.weight"]))

    def test_a_bound_of_zero_takes_everything_back(self):
        self.move(0.1)
        self.assertEqual(keel.guard(self.policy, self.old, self.rows, 0).kl, 0)
        for name, value in self.policy.named_parameters():
            torch.testing.assert_close(value.detach(), self.old[name], rtol=0, atol=1e-6)

    def test_dropout_is_off_while_it_measures_and_on_again_after(self):
        net = nn.Sequential(nn.Linear(3, 16), nn.Dropout(0.5), nn.Linear(16, 4))
        old = keel.snapshot(net)
        found = keel.guard(net, old, self.rows, 0.02, distribution=lambda rows: td.Categorical(logits=net(rows)))
        self.assertEqual((found.kl, found.scale), (0, 1))
        self.assertTrue(net[1].training)

    def test_a_tiny_kl_keeps_its_digits(self):
        old = [_kl.Head("gaussian", (torch.zeros(1, 1).double(), torch.zeros(1, 1).double()))]
        new = [_kl.Head("gaussian", (torch.full((1, 1), 1e-9).double(), torch.full((1, 1), 1e-9).double()))]
        self.assertAlmostEqual(float(_kl.kl(old, new)) / 1.5e-18, 1, places=6)

    def test_masked_categories_cost_nothing(self):
        head = _kl.numbers(td.Categorical(logits=torch.tensor([[0.0, 1.0, -1e9]])))
        self.assertEqual(float(_kl.kl(head, head)), 0)
        other = _kl.numbers(td.Categorical(logits=torch.tensor([[1.0, 0.0, -1e9]])))
        p = 1 / (1 + math.e)
        self.assertAlmostEqual(float(_kl.kl(head, other)), p * -1 + (1 - p) * 1, places=6)

    def test_other_distributions_go_by_torch_and_survive_the_change_of_their_parameters(self):
        class Shaped(nn.Module):
            def __init__(self):
                super().__init__()
                self.rate = nn.Parameter(torch.tensor([2.0]))

            def forward(self, rows):
                return td.Gamma(self.rate, self.rate)

        policy = Shaped()
        old = keel.snapshot(policy)
        policy.rate.data += 1
        expected = float(td.kl_divergence(td.Gamma(2.0, 2.0), td.Gamma(3.0, 3.0)))
        self.assertAlmostEqual(keel.mean_kl(policy, old, torch.zeros(1, 1)), expected, places=5)

    def test_a_squashed_gaussian_has_the_kl_of_what_is_squashed(self):
        plain = td.Normal(torch.zeros(4, 1), torch.ones(4, 1))
        squashed = td.TransformedDistribution(plain, [td.TanhTransform()])
        other = td.Normal(torch.ones(4, 1), torch.ones(4, 1))
        kl = _kl.kl(_kl.numbers(squashed), _kl.numbers(td.TransformedDistribution(other, [td.TanhTransform()])))
        self.assertEqual(kl.tolist(), [0.5] * 4)
        with self.assertRaisesRegex(TypeError, "AffineTransform"):
            _kl.numbers(td.TransformedDistribution(plain, [td.AffineTransform(0.0, torch.ones(1))]))

    def test_what_is_wrong_is_said_and_nothing_is_changed(self):
        self.move(0.1)
        before = keel.snapshot(self.policy)
        wrong = [
            (lambda: keel.guard(self.policy, self.old, self.rows, -1), "finite number from 0"),
            (lambda: keel.guard(self.policy, {"other": torch.zeros(1)}, self.rows, 1), "'other'"),
            (lambda: keel.guard(self.policy, {}, self.rows, 1), "empty"),
            (lambda: keel.guard(self.policy, [torch.zeros(1)], self.rows, 1), "1 tensors"),
            (lambda: keel.guard(self.policy, dict(self.policy.named_parameters()), self.rows, 1), "own memory"),
            (lambda: keel.guard(self.policy, self.old, self.rows[:0], 1), "rows"),
        ]
        for call, words in wrong:
            with self.assertRaisesRegex(ValueError, words):
                call()
        self.assertTrue(all(torch.equal(value, before[name]) for name, value in self.policy.named_parameters()))
        with self.assertRaisesRegex(TypeError, "Tensor"):
            keel.guard(self.policy, self.old, self.rows, 1, distribution=lambda rows: rows)


if __name__ == "__main__":
    unittest.main()
