"""Steps that are hard to replay: gradients stay right bit for bit."""

import contextlib
import importlib.util
import os
import sys
import unittest
import warnings

from tessera_command import PROGRAM, ROOT

TORCH = importlib.util.find_spec("torch") is not None
if TORCH:
    sys.path.insert(0, str(ROOT / "tools/python"))
    os.environ["TESSERA"] = str(PROGRAM)
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    import tessera.torch


def wide(*shape):
    torch.manual_seed(len(shape))
    return torch.randn(*shape)


class Steps(unittest.TestCase):
    """`build()` gives (parameters, loss function); every loss runs with and without plans."""

    def gradients(self, parameters, step):
        for parameter in parameters:
            parameter.grad = None
        torch.manual_seed(7)
        loss = step()
        return [loss, *[p.grad.clone() for p in parameters if p.grad is not None], torch.get_rng_state()]

    def hold(self, parameters, loss_of, shares=(75, 50), swaps=(False, True)):
        """Compares plans with the plain run; gives the graph and the names of what ran again."""

        def step():
            loss = loss_of()
            if loss.requires_grad:
                loss.backward()
            return loss.detach()

        plain = self.gradients(parameters, step)
        torch.manual_seed(7)
        graph = tessera.torch.record(step)
        again = []
        for share in shares:
            for swap in swaps:
                with contextlib.suppress(tessera.torch.Infeasible):
                    again += self.compare(parameters, step, graph, plain, f"{share}%", swap)
        return graph, again

    def compare(self, parameters, step, graph, plain, budget, swap):
        plan = tessera.torch.plan(graph, budget, swap=swap, effort="fast")
        with tessera.torch.applied(plan) as run:
            found = self.gradients(parameters, lambda: self.counted(step, plan))
        self.assertEqual(len(found), len(plain))
        for number, (a, b) in enumerate(zip(found, plain)):
            self.assertTrue(torch.equal(a, b), (budget, swap, number, len(plain)))
        self.assertEqual(run.recomputed, plan.recomputed)
        return plan.recomputed + [name for name, _ in plan.swapped]

    def counted(self, step, plan):
        losses = []
        self.assertEqual(tessera.torch.peak(lambda: losses.append(step())), plan.peak_bytes)
        self.assertLessEqual(plan.peak_bytes, plan.budget_bytes)
        return losses[0]

    def layers(self, count=4, width=16):
        torch.manual_seed(3)
        return nn.ModuleList(nn.Linear(width, width) for _ in range(count))


def chain(layers, x, act=torch.tanh):
    for layer in layers:
        x = act(layer(x))
    return x


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class Operators(Steps):
    def test_python_numbers_are_saved_as_they_are(self):
        for dtype in (torch.float32, torch.float64):
            layers, x = self.layers().to(dtype), wide(8, 16).to(dtype)
            self.hold(list(layers.parameters()), lambda: chain(layers, x * 0.3).div(3).mul(0.1).sum() * 0.1)

    def test_a_tensor_saved_many_times_counts_once(self):
        layers, x = self.layers(), wide(8, 16)
        graph, _ = self.hold(list(layers.parameters()), lambda: (lambda y: (y * y * y + y.exp() * y).sum())(chain(layers, x)))
        self.assertLess(graph.peak_bytes, 8 * 16 * 4 * 16)

    def test_views_share_one_storage(self):
        w = wide(64, 64).requires_grad_()

        def loss():
            y = (w * 2).exp()
            return (y[:32].sin() * y.t()[32:].sin()).sum() + y.view(-1)[5:].cos().sum()

        graph, _ = self.hold([w], loss)
        saved = {value for value in graph.saved if value is not None}
        self.assertEqual(graph.values[min(saved)].nbytes, 64 * 64 * 4)

    def test_in_place_operators(self):
        layers, x = self.layers(), wide(8, 16)

        def loss():
            y = x.clone()
            for layer in layers:
                y = layer(y)
                y.sigmoid_()
                y = y.mul(2).add_(1).clamp_(max=1.5)
            return y.sum()

        self.hold(list(layers.parameters()), loss)

    def test_a_buffer_filled_slice_by_slice(self):
        layers, x = self.layers(), wide(8, 16)

        def loss():
            out = torch.zeros(4, 8, 16)
            y = x
            for index, layer in enumerate(layers):
                y = torch.tanh(layer(y))
                out[index] = y
            return (out.sin() * out.sum(0).exp()).sum()

        self.hold(list(layers.parameters()), loss)

    def test_a_value_is_read_before_it_is_overwritten(self):
        layers, x = self.layers(), wide(8, 16)

        def loss():
            y = x
            for layer in layers:
                y = layer(y)
                half = y.detach().abs() + 1
                y.mul_(2)
                y = (y * half).tanh()
            return y.sum()

        self.hold(list(layers.parameters()), loss)

    def test_an_input_that_is_overwritten_makes_its_readers_stay(self):
        layers = self.layers()
        source, x = wide(8, 16), torch.empty(8, 16)

        def loss():
            x.copy_(source)
            y = chain(layers, x + 1)
            x.zero_()
            return y.sum()

        graph, _ = self.hold(list(layers.parameters()), loss)
        self.assertTrue(any("overwritten" in reason for _, _, reason in graph.kept))

    def test_random_operators_keep_their_numbers(self):
        layers, x = self.layers(), wide(8, 16)
        own = torch.Generator()

        def loss():
            own.manual_seed(5)
            y = x
            for layer in layers:
                y = functional.dropout(torch.tanh(layer(y)), 0.3) * torch.rand(8, 16) * torch.rand(8, 16, generator=own)
                y = functional.rrelu(y, training=True)
            return y.sum()

        _, again = self.hold(list(layers.parameters()), loss)
        self.assertTrue(any("rand" in name or "bernoulli" in name for name in again), again)

    def test_autocast(self):
        layers, x = self.layers(), wide(8, 16)

        def loss():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return chain(layers, x).float().sum()

        self.hold(list(layers.parameters()), loss)

    def test_complex_numbers(self):
        w = wide(8, 16).requires_grad_()
        self.hold([w], lambda: (torch.view_as_complex(w.view(8, 8, 2)).exp().conj() * torch.view_as_complex(
            w.exp().view(8, 8, 2))).abs().sum())

    def test_batch_norm_in_evaluation(self):
        torch.manual_seed(0)
        layers = [(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()) for _ in range(4)]
        model = nn.Sequential(*[layer for part in layers for layer in part])
        x = wide(2, 4, 8, 8)
        model(x)
        model.eval()
        self.hold(list(model.parameters()), lambda: model(x).sin().sum())


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class Structures(Steps):
    def test_several_passes_in_a_step(self):
        layers, batches = self.layers(), [wide(8, 16), wide(16, 16), wide(4, 16)]

        def loss():
            total = 0
            for batch in batches:
                part = functional.dropout(chain(layers, batch), 0.2).sum()
                part.backward()
                total = total + part.detach()
            return total

        graph, _ = self.hold(list(layers.parameters()), loss)
        self.assertGreater(len(graph.nodes), 12)

    def test_an_optimizer_in_the_step(self):
        x = wide(8, 16)
        outcomes = []
        for share in (None, "60%"):
            layers = self.layers()
            optimizer = torch.optim.Adam(layers.parameters())

            def step(layers=layers, optimizer=optimizer):
                optimizer.zero_grad()
                loss = functional.dropout(chain(layers, x), 0.1).sum()
                loss.backward()
                optimizer.step()
                return loss.detach()

            torch.manual_seed(0)
            graph = tessera.torch.record(step)
            plan = tessera.torch.plan(graph, share or "100%", swap=False)
            self.assertEqual(bool(plan.recomputed), bool(share))
            for _ in range(3):
                with tessera.torch.applied(plan) if share else contextlib.nullcontext():
                    step()
            outcomes.append([p.detach().clone() for p in layers.parameters()])
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(*outcomes)))

    def test_what_runs_without_gradients(self):
        layers, teacher, x = self.layers(), self.layers(), wide(8, 16)

        def loss():
            with torch.no_grad():
                goal = chain(teacher, x).exp()
            return (chain(layers, x) * goal).sum()

        self.hold(list(layers.parameters()), loss)

    def test_a_part_without_a_backward_pass(self):
        layers, x = self.layers(), wide(8, 16)

        def loss():
            chain(layers, x.exp()).sum()
            y = chain(layers, x)
            unused = (y.exp() * y).sum()
            return y.sum() + 0 * unused.detach()

        self.hold(list(layers.parameters()), loss)

    def test_a_model_that_runs_by_a_plan(self):
        model = nn.Sequential(*self.layers(), nn.Dropout(0.2))
        parameters, x = list(model.parameters()), wide(8, 16)

        def step():
            loss = model(x).tanh().sum()
            loss.backward()
            return loss.detach()

        plain = [self.gradients(parameters, step) for _ in range(2)]
        plan = tessera.torch.plan(tessera.torch.record(step), "70%", swap=False)
        applied = tessera.torch.apply(model, plan)
        for found in plain:
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(self.gradients(parameters, step), found)))
            self.assertEqual(applied.last.recomputed, plan.recomputed)
            with torch.no_grad():
                model(x[:3])
        self.assertEqual(tessera.torch.peak(step), plan.peak_bytes)
        self.assertEqual(applied.runs, 3)
        applied.remove()
        self.assertEqual(tessera.torch.peak(step), plan.base_peak_bytes)

    def test_checkpoints_inside(self):
        layers, x = self.layers(), wide(8, 16).requires_grad_()
        kinds = [{"use_reentrant": True}, {"use_reentrant": False}]
        for kind in kinds:
            with self.subTest(str(kind)):
                self.hold(list(layers.parameters()),
                          lambda kind=kind: chain(layers, checkpoint(lambda y: chain(layers, y), chain(layers, x), **kind)).sum())

    def test_custom_functions_keep_what_they_make(self):
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                out = torch.zeros_like(x)
                out.numpy()[:] = x.detach().numpy() * 2
                ctx.save_for_backward(x, out)
                return out + 0

            @staticmethod
            def backward(ctx, grad):
                x, out = ctx.saved_tensors
                x, out = ctx.saved_tensors
                return grad * (out / x)

        layers, x = self.layers(), wide(8, 16)
        graph, _ = self.hold(list(layers.parameters()), lambda: chain(layers, x, lambda y: Doubled.apply(y).tanh()).sum())
        self.assertTrue(any("custom autograd function" in reason for _, _, reason in graph.kept))

    def test_writes_that_no_operator_makes(self):
        layers, x = self.layers(), wide(8, 16)

        def loss():
            y = x
            for layer in layers:
                factor = torch.zeros(8, 16)
                factor.numpy()[:] = 3
                y = (layer(y) * factor).tanh() * factor.exp()
            return y.sum()

        graph, _ = self.hold(list(layers.parameters()), loss)
        self.assertTrue(any("other means" in reason for _, _, reason in graph.kept))


if __name__ == "__main__":
    unittest.main()
