"""A plan that runs: the same losses and gradients bit for bit, and the peak of saved tensors that was promised."""

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import unittest

from tessera_command import PROGRAM, ROOT, EndToEnd

TORCH = importlib.util.find_spec("torch") is not None
if TORCH:
    sys.path.insert(0, str(ROOT / "tools/python"))
    os.environ["TESSERA"] = str(PROGRAM)
    import torch
    import torch_models
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.utils._python_dispatch import TorchDispatchMode

    import tessera.torch
    from tessera.torch.storages import is_plain, storage_of, tensors_in

NO_TORCH = "PyTorch is not installed (Debian: python3-torch)"
BUDGETS = (90, 80, 70, 60, 50, 40)


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


@unittest.skipUnless(TORCH, NO_TORCH)
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


for _name in ("resnet", "unet", "vit", "gpt", "lstm"):
    for _swap in (False, True):
        setattr(Models, f"test_{_name}_{'swapped' if _swap else 'recomputed'}",
                lambda self, name=_name, swap=_swap: self.hold(name, swap))


if TORCH:

    class Living(TorchDispatchMode):
        """Counts what is alive of the storages that operators made, by weak references: no part of the package."""

        def __init__(self):
            super().__init__()
            self.made = {}

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            known = {storage_of(tensor)._cdata for tensor in tensors_in((args, kwargs or {})) if is_plain(tensor)}
            result = func(*args, **(kwargs or {}))
            for tensor in tensors_in(result):
                storage = storage_of(tensor)
                if storage._cdata not in known and storage._cdata not in self.made:
                    self.made[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
            return result

        def bytes(self):
            return sum(size for weak, size in self.made.values() if not weak.expired())


@unittest.skipUnless(TORCH, NO_TORCH)
class Memory(EndToEnd):
    def test_what_a_plan_drops_is_freed(self):
        training = torch_models.Training("resnet")
        plan = tessera.torch.plan(tessera.torch.record(training.step), "40%", swap=False)
        living = []
        for under in (contextlib.nullcontext(), tessera.torch.applied(plan)):
            counter = Living()
            with under:
                with counter:
                    loss = training.loss()
                living.append(counter.bytes())
                loss.backward()
            del loss
        plain, planned = living
        self.assertGreaterEqual(plain, 0.98 * plan.base_peak_bytes)
        self.assertLessEqual(planned, plan.peak_bytes + 0.02 * plain)

    def test_a_training_loop_of_the_guide_runs(self):
        guide = (ROOT / "docs/howto/plan_memory.md").read_text()
        example = re.search(r"(?ms)^```python\n(.*?)^```$", guide).group(1)
        self.assertLessEqual(len([line for line in example.splitlines() if line]), 24)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}
        result = subprocess.run([sys.executable, "-B", "-W", "error", "-c", example], cwd=self.folder, env=environment,
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("Plan(", result.stdout)


class WithoutPyTorch(EndToEnd):
    def test_the_error_says_what_to_install(self):
        code = "import sys; sys.modules['torch'] = None\nimport tessera\ntessera.torch"
        result = subprocess.run([sys.executable, "-B", "-c", code], cwd=self.folder, capture_output=True, text=True, check=False,
                                env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
        self.assertIn("ImportError: tessera.torch needs PyTorch 1.13 or later", result.stderr)


if __name__ == "__main__":
    unittest.main()
