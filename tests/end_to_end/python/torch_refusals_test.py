"""Steps that cannot be recorded, and steps that are not those of their plan: refused in words."""

import unittest
import warnings

from torch_steps_test import TORCH, Steps, chain, wide

if TORCH:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    import tessera.torch


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class Refusals(Steps):
    def planned(self, count=4):
        """Parameters, a step over a list that holds the batch and the activation, and its plan at 50 %."""
        layers, state = self.layers(count), {"x": wide(8, 16), "act": torch.tanh, "tail": torch.sum}

        def step():
            loss = state["tail"](chain(layers, state["x"], state["act"]))
            loss.backward()
            return loss.detach()

        step()
        return list(layers.parameters()), state, step, tessera.torch.plan(tessera.torch.record(step), "60%", swap=False)

    def test_double_backward_is_refused(self):
        w = wide(8, 8).requires_grad_()

        def twice():
            loss = w.exp().sin().sum()
            loss.backward(retain_graph=True)
            loss.backward()
            return loss

        def penalty():
            slope, = torch.autograd.grad(w.exp().sin().sum(), w, create_graph=True)
            slope.pow(2).sum().backward()
            return slope

        for step in (twice, penalty):
            with self.assertRaisesRegex(tessera.torch.StepError, "retain_graph or create_graph"):
                tessera.torch.record(step)

    def test_a_step_without_backward_is_refused(self):
        with self.assertRaisesRegex(tessera.torch.StepError, "no backward pass"):
            tessera.torch.record(lambda: torch.ones(2))

    def test_a_step_that_checkpoints_itself_is_told_so(self):
        layers, x = self.layers(4), wide(8, 16).requires_grad_()

        def step(last, reentrant):
            hidden = x
            for number, layer in enumerate(layers):
                last_one = number == len(layers) - 1
                hidden = layer(hidden) if last_one and last else checkpoint(layer, hidden, use_reentrant=reentrant)
            loss = hidden.pow(2).sum() if last else hidden.sum()
            loss.backward()
            return loss.detach()

        kept = r"[0-9]+ B stay, made in a custom autograd function \(torch.utils.checkpoint with use_reentrant=True"
        hooked = "saves under hooks of its own \\(torch.utils.checkpoint with use_reentrant=False"
        for reentrant, words in ((True, kept), (False, hooked)):
            graph = tessera.torch.record(lambda again=reentrant: step(True, again))
            with self.assertRaisesRegex(tessera.torch.Infeasible, words):
                tessera.torch.plan(graph, "1%", swap=False)
        with self.assertRaisesRegex(tessera.torch.StepError, hooked):
            tessera.torch.record(lambda: step(False, False))
        enter = torch.autograd.graph.saved_tensors_hooks.__enter__
        self.assertEqual(enter.__name__, "__enter__")  # PyTorch is as it was

    def test_what_pytorch_refuses_is_refused(self):
        w = wide(8, 8).requires_grad_()

        def step():
            y = w.exp()
            z = y.sin()
            y.zero_()
            z.sum().backward()

        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            tessera.torch.record(step)

    def test_parameters_written_before_backward(self):
        parameters, state, step, plan = self.planned()

        def written(y):
            with torch.no_grad():
                parameters[2].mul_(2)
            return y.sum()

        state["tail"] = written
        with self.assertRaises(RuntimeError), tessera.torch.applied(plan, on_change="keep"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step()

    def test_other_shapes_and_operators_are_refused(self):
        _, state, step, plan = self.planned()
        changes = (("x", wide(4, 16), r"saved tensor 0 is \[4, 16\], recorded was \[8, 16\]"),
                   ("act", torch.sigmoid, r"is aten.sigmoid.default\(\[8, 16\]\), recorded was aten.tanh.default"),
                   ("tail", lambda y: y.exp().sum(), "is aten.exp.default"))
        for name, value, words in changes:
            before, state[name] = state[name], value
            with self.assertRaisesRegex(tessera.torch.StepChanged, "the step is not the recorded one: .*" + words):
                with tessera.torch.applied(plan):
                    step()
            state[name] = before
        with tessera.torch.applied(plan):
            step()

    def test_a_changed_step_goes_on_where_asked_to(self):
        parameters, state, step, plan = self.planned()
        changes = {"x": wide(4, 16), "act": torch.sigmoid, "tail": lambda y: y.exp().sum()}
        for name, value in changes.items():
            before, state[name] = state[name], value
            plain = self.gradients(parameters, step)
            with warnings.catch_warnings(record=True) as caught, tessera.torch.applied(plan, on_change="keep") as run:
                warnings.simplefilter("always")
                found = self.gradients(parameters, step)
            self.assertFalse(run.followed)
            self.assertIn("not the recorded one", str(caught[0].message))
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(found, plain)), name)
            state[name] = before

    def test_other_data_of_the_same_shape_is_the_same_step(self):
        parameters, state, step, plan = self.planned()
        for _ in range(3):
            state["x"] = torch.randn(8, 16)
            plain = self.gradients(parameters, step)
            with tessera.torch.applied(plan):
                found = self.gradients(parameters, step)
            self.assertTrue(all(torch.equal(a, b) for a, b in zip(found, plain)))

    def test_budgets(self):
        _, _, step, plan = self.planned()
        graph = plan.graph
        for wrong in ("", "3 apples", "-5", 0, -1, None, True, "0%"):
            with self.assertRaisesRegex(ValueError, "is no size"):
                tessera.torch.plan(graph, wrong)
        for ample in (graph.peak_bytes, graph.peak_bytes * 2, "100%"):
            self.assertEqual((tessera.torch.plan(graph, ample).recomputed, tessera.torch.plan(graph, ample).swapped), ([], []))
        with self.assertRaisesRegex(ValueError, "on_change"):
            tessera.torch.applied(plan, on_change="ignore")
        self.assertEqual(tessera.torch.plan(graph, "1 GiB").budget_bytes, 2**30)
        with self.assertRaises(tessera.torch.Infeasible) as caught:
            tessera.torch.plan(graph, "1%", swap=False)
        least = caught.exception.least_bytes
        self.assertEqual(tessera.torch.plan(graph, least, swap=False).peak_bytes, least)

    def test_an_equal_operator_of_another_tensor_is_named(self):
        layers, x, state = self.layers(), wide(8, 16), {"twice": False}

        def step():
            first = torch.tanh(layers[0](x))
            second = torch.tanh(layers[1](first))
            loss = torch.tanh(second + (second if state["twice"] else first)).sum()  # a sum saves nothing
            loss.backward()
            return loss.detach()

        graph = tessera.torch.record(step)
        for part in (*graph.units, *graph.nodes):  # time for copies, however the machine was loaded
            part.seconds = 1e-3
        plan = tessera.torch.plan(graph, "80%", swap=True)
        state["twice"] = True
        with self.assertRaisesRegex(tessera.torch.StepChanged, r"aten.add.Tensor\(\[8, 16\], \[8, 16\]\), whose argument 1 is not the tensor"):
            with tessera.torch.applied(plan):
                step()

    def test_a_plan_inside_a_plan_is_refused(self):
        _, _, step, plan = self.planned()
        with self.assertRaisesRegex(tessera.torch.StepError, "another plan is applied already"):
            with tessera.torch.applied(plan), tessera.torch.applied(plan):
                step()
        with tessera.torch.applied(plan):
            step()


class Fails(nn.Module if TORCH else object):
    """A chain of layers that can fail in its third."""

    def __init__(self, layers):
        super().__init__()
        self.layers, self.fails = layers, False

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            if self.fails and number == 2:
                raise ValueError("in the middle")
            x = torch.tanh(layer(x))
        return x


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class Failures(Steps):
    """What a step that ends early leaves behind: nothing."""

    def setUp(self):
        self.model, self.x = Fails(self.layers()), wide(8, 16)
        self.parameters = list(self.model.parameters())
        self.plain = self.gradients(self.parameters, self.step)
        self.plan = tessera.torch.plan(tessera.torch.record(self.step), "60%", swap=False)

    def step(self):
        loss = self.model(self.x).sum()
        loss.backward()
        return loss.detach()

    def planned(self):
        with tessera.torch.applied(self.plan):
            return self.step()

    def hold_as_before(self, step):
        found = self.gradients(self.parameters, step)
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(found, self.plain)))

    def test_a_forward_pass_that_fails(self):
        self.model.fails = True
        with self.assertRaisesRegex(ValueError, "in the middle"):
            self.planned()
        self.model.fails = False
        self.hold_as_before(self.step)
        self.hold_as_before(self.planned)

    def test_a_backward_pass_that_fails(self):
        def fail(gradient):
            raise ValueError("in the middle")

        hook = self.model.layers[1].register_forward_hook(lambda module, inputs, output: output.register_hook(fail) and None)
        with self.assertRaisesRegex(ValueError, "in the middle"):
            self.planned()
        hook.remove()
        self.hold_as_before(self.step)
        self.hold_as_before(self.planned)

    def test_a_model_by_a_plan_that_fails(self):
        applied = tessera.torch.apply(self.model, self.plan)
        self.model.fails = True
        with self.assertRaisesRegex(ValueError, "in the middle"):
            self.step()
        self.assertEqual((torch.ones(3, requires_grad=True) + 1).sum().item(), 6)  # no part of any step
        self.model.fails = False
        self.hold_as_before(self.step)
        applied.remove()

    def test_a_model_by_a_plan_with_another_batch(self):
        applied = tessera.torch.apply(self.model, self.plan)
        batch, self.x = self.x, wide(4, 16)
        with self.assertRaisesRegex(tessera.torch.StepChanged, r"\[4, 16\], recorded was \[8, 16\]"):
            self.step()
        self.assertEqual((torch.ones(3, requires_grad=True) + 1).sum().item(), 6)
        self.x = batch
        self.hold_as_before(self.step)
        applied.remove()
        self.hold_as_before(self.step)


if __name__ == "__main__":
    unittest.main()
