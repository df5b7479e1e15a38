"""Random programs of in-place operators, views, random numbers and slices: right gradients under every plan."""

import importlib.util
import os
import random
import sys
import unittest

from tessera_command import PROGRAM, ROOT

TORCH = importlib.util.find_spec("torch") is not None
if TORCH:
    sys.path.insert(0, str(ROOT / "tools/python"))
    os.environ["TESSERA"] = str(PROGRAM)
    import torch
    from torch.nn import functional

    import tessera.torch

PROGRAMS = int(os.environ.get("TESSERA_RANDOM_STEPS", "12"))


def add_in_place(t, u, w):
    return (t * 0.5).add_(u)


def multiply_by_an_earlier_self(t, u, w):
    result = t + 1
    return result.mul_(result.detach().abs())


def fill_slices(t, u, w):
    result = torch.zeros_like(t)
    result[:3] = t[:3] * 2
    result[3:] = u[3:]
    return result.sin()


def change_rows(t, u, w):
    result = t.clone()
    result[0].zero_()
    result[1:2] *= 2
    return result


def gates(t, u, w):
    a, b = (t @ w).chunk(2, 1)
    a = torch.sigmoid(a)
    return torch.cat([a, b * a], 1)


def unsafe_gates(t, u, w):
    a, b = (t @ w).unsafe_chunk(2, 1)
    a.sigmoid_()
    b.tanh_()
    return torch.cat([a * b, b], 1)


def masked_without_gradients(t, u, w):
    with torch.no_grad():
        mask = (t + u).sign()
    return t * mask


OPERATORS = [
    add_in_place, multiply_by_an_earlier_self, fill_slices, change_rows, gates, unsafe_gates, masked_without_gradients,
    lambda t, u, w: t @ w,
    lambda t, u, w: t.tanh(),
    lambda t, u, w: t * u,
    lambda t, u, w: functional.relu_(t @ w),
    lambda t, u, w: functional.dropout(t, 0.3),
    lambda t, u, w: torch.cat([t, u], 1)[:, 3:11],
    lambda t, u, w: t[:, :4].repeat(1, 2),
    lambda t, u, w: t.softmax(-1),
    lambda t, u, w: functional.conv1d(t[None], w[:, :, None])[0],
    lambda t, u, w: t.t().contiguous().view(-1).view(8, 8),
    lambda t, u, w: torch.where(t > 0, t, u),
    lambda t, u, w: functional.layer_norm(t, (8,)),
    lambda t, u, w: t.masked_fill(u > 0.5, 0.0),
    lambda t, u, w: t[torch.arange(8).flip(0)],
    lambda t, u, w: t * torch.randn(8, 8),
    lambda t, u, w: t * u[:1].expand(8, 8),
    lambda t, u, w: t / 3.0 + 0.1 * u,
    lambda t, u, w: t.max(1, keepdim=True)[0] * u,
]


def random_step(seed):
    """(parameters, loss function) of a program that reads earlier results at random."""
    numbers = random.Random(seed)
    torch.manual_seed(seed)
    parameters = [(torch.randn(8, 8) * 0.5).requires_grad_() for _ in range(3)]
    lines = [(numbers.choice(OPERATORS), numbers.random(), numbers.random()) for _ in range(numbers.randint(6, 30))]

    def loss():
        made = [torch.tanh(parameters[0])]
        for operator, a, b in lines:
            made.append(operator(made[int(a * len(made))], made[int(b * len(made))], parameters[int(b * 3)]))
        return sum(result.mean() for result in made[-4:]) * 0.3

    return parameters, loss


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class RandomSteps(unittest.TestCase):
    def outcome(self, seed, parameters, step):
        for parameter in parameters:
            parameter.grad = None
        torch.manual_seed(seed)
        loss = step()
        return [loss, *[p.grad.clone() for p in parameters if p.grad is not None], torch.get_rng_state()]

    def test_every_plan_gives_the_same_gradients(self):
        plans = again = 0
        for seed in range(PROGRAMS):
            parameters, loss_of = random_step(seed)

            def step(loss_of=loss_of):
                loss = loss_of()
                loss.backward()
                return loss.detach()

            plain = self.outcome(seed, parameters, step)
            graph = tessera.torch.record(step)
            for share in (80, 45):
                for swap in (False, True):
                    plan = self.plan(graph, share, swap)
                    if plan is not None:
                        plans += 1
                        again += len(plan.recomputed)
                        self.hold(plan, plain, lambda: self.outcome(seed, parameters, step), (seed, share, swap))
        self.assertGreater(plans, PROGRAMS)
        self.assertGreater(again, PROGRAMS)

    def plan(self, graph, share, swap):
        try:
            return tessera.torch.plan(graph, f"{share}%", swap=swap, effort="fast")
        except tessera.torch.Infeasible:
            return None

    def hold(self, plan, plain, run_step, name):
        found = []
        with tessera.torch.applied(plan) as run:
            peak = tessera.torch.peak(lambda: found.append(run_step()))
        for ours, theirs in zip(found[0], plain):
            # Bytes, as a step may well make NaN.
            self.assertEqual(ours.numpy().tobytes(), theirs.numpy().tobytes(), name)
        self.assertEqual((peak, run.recomputed), (plan.peak_bytes, plan.recomputed), name)
        self.assertLessEqual(peak, plan.budget_bytes, name)


if __name__ == "__main__":
    unittest.main()
