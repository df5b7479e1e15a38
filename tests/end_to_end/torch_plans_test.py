"""A plan that runs: the same losses and gradients bit for bit, and the peak of saved tensors that was promised."""

import importlib.util
import os
import sys
import unittest

from tessera_command import PROGRAM, ROOT, EndToEnd

sys.path.insert(0, str(ROOT / "tools/python"))
os.environ["TESSERA"] = str(PROGRAM)
if not importlib.util.find_spec("torch"):
    raise SystemExit("skipped: PyTorch is not installed (Debian: python3-torch)")

import torch  # noqa: E402, only where it is there
import torch_models  # noqa: E402

import tessera.torch  # noqa: E402, found through the lines above

BUDGETS = (90, 80, 70, 60, 50, 40)


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


class Models(EndToEnd):
    """Every model at every budget, by recomputation alone and with swapping."""

    def hold(self, name, swap):
        training = torch_models.Training(name)
        graph = tessera.torch.record(training.step)
        plain = training.outcome(training.step)
        found = 0
        for share in BUDGETS:
            try:
                plan = tessera.torch.plan(graph, f"{share}%", swap=swap, effort="fast")
            except tessera.torch.Infeasible as error:
                self.assertGreater(error.least_bytes, share / 100 * graph.peak_bytes)
                self.assertIn(f"the least feasible budget is {error.least_bytes} B", str(error))
                continue
            found += 1
            self.run_plan(training, plan, plain, f"{name} {share}%")
        self.assertGreaterEqual(found, 3)

    def run_plan(self, training, plan, plain, name):
        runs, peaks = [], []

        def planned():
            with tessera.torch.applied(plan) as run:
                runs.append(run)
                return training.step()

        def counted():
            losses = []
            peaks.append(tessera.torch.peak(lambda: losses.append(planned())))
            return losses[0]

        with self.subTest(name):
            self.assertTrue(same(training.outcome(counted), plain))
            self.assertEqual(peaks, [plan.peak_bytes])
            self.assertLessEqual(plan.peak_bytes, plan.budget_bytes)
            self.assertEqual(runs[0].recomputed, plan.recomputed)
            self.assertEqual(sorted(runs[0].swapped), sorted(plan.swapped))
            print(f"{name}: {plan}, measured {1e3 * runs[0].extra_s:.1f} ms on top of {1e3 * plan.graph.seconds:.1f} ms")


for _name in torch_models.MODELS:
    for _swap in (False, True):
        setattr(Models, f"test_{_name}_{'swapped' if _swap else 'recomputed'}",
                lambda self, name=_name, swap=_swap: self.hold(name, swap))


if __name__ == "__main__":
    unittest.main()
