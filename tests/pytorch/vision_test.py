"""Whole image models against torchvision on the CPU, on small images: parameters, bytes saved for backward, FLOPs, launches."""

import importlib.util
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/end_to_end"), str(ROOT / "tests/pytorch")]

from graph_text import blocks_of
from tessera_command import EndToEnd

VISION = importlib.util.find_spec("torchvision") is not None
if VISION:
    import torch
    from meter import Step
    from torchvision import models

PIXELS = 64


@unittest.skipUnless(VISION, "torchvision is not installed (Debian: python3-torchvision)")
class ImageModels(EndToEnd):
    """Two images of 64 x 64 pixels, with a gradient of the logits from outside."""

    def hold(self, ours, module, saves_otherwise=0):
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(f"model: {{extends: {ours}, image_size: {PIXELS}}}\ncluster: dgx-h100\n"
                            "training: {framework: hf-eager, global_batch: 2, mode: forward_backward}\n")
        blocks = blocks_of(self.answer("show", "graph", scenario)).values()
        printed = 5e-4 * sum(block.count for block in blocks)  # GFLOP, which are rounded block by block
        step = Step(module.train(), torch.randn(2, 3, PIXELS, PIXELS))
        total = lambda number: sum(block.count * number(block) for block in blocks)
        self.assertEqual(total(lambda block: block.parameters), step.parameters)
        self.assertAlmostEqual(total(lambda block: block.saved) / (step.saved + saves_otherwise), 1, delta=2e-3)
        for ours_of, theirs in ((lambda block: block.forward, step.forward), (lambda block: block.backward, step.backward)):
            self.assertAlmostEqual(total(lambda block: ours_of(block)[1]), theirs.flops * 1e-9, delta=printed)
            self.assertAlmostEqual(total(lambda block: ours_of(block)[0]), theirs.total(), delta=1, msg=theirs.kernels)

    def test_resnet(self):
        self.hold("resnet-50", models.resnet50(weights=None))

    def test_resnext(self):
        self.hold("resnext-50-32x4d", models.resnext50_32x4d(weights=None))

    def test_vgg(self):
        self.hold("vgg-16", models.vgg16(weights=None))

    def test_densenet(self):
        self.hold("densenet-121", models.densenet121(weights=None))

    def test_googlenet(self):
        # Mean keeps its input in PyTorch 1.13, for its number of elements alone: [2, 1024, 2, 2].
        self.hold("googlenet", models.googlenet(weights=None, aux_logits=False, init_weights=False), -4 * 2 * 1024 * 4)


@unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed (Debian: python3-torch)")
class DiffusionTransformer(EndToEnd):
    """DiT-S/2 on two latents of 8 x 8."""

    def test_dit(self):
        import torch
        from dit import DiT
        from meter import Step
        images, side, hidden, layers = 2, 8, 384, 12
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(f"model: {{name: dit, family: vision, architecture: dit_s_2, image_size: {side}}}\n"
                            f"cluster: dgx-h100\ntraining: {{framework: hf-eager, global_batch: {images}, mode: forward_backward}}\n")
        blocks = blocks_of(self.answer("show", "graph", scenario)).values()
        step = Step(DiT(images, side, hidden, 6, layers), torch.randn(images, 4, side, side))
        total = lambda number: sum(block.count * number(block) for block in blocks)
        self.assertEqual(total(lambda block: block.parameters), step.parameters)
        # The condition, which all layers read, counts as a buffer.
        self.assertAlmostEqual(total(lambda block: block.saved) / (step.saved - 4 * images * hidden), 1, delta=2e-3)
        printed = 5e-4 * sum(block.count for block in blocks)
        # Norms copy rows of patches that lie by channel by themselves, in both directions; in backward the meter counts sums for
        # weights, which these norms do not have, instead. Of the embedding's gradient the zeros are a kernel, and the
        # condition's first gradient is added to a buffer.
        norms = 2 * layers + 1
        for ours_of, theirs, more in ((lambda block: block.forward, step.forward, norms), (lambda block: block.backward, step.backward, 2)):
            self.assertAlmostEqual(total(lambda block: ours_of(block)[1]), theirs.flops * 1e-9, delta=printed)
            self.assertEqual(total(lambda block: ours_of(block)[0]), theirs.total() + more, theirs.kernels)


if __name__ == "__main__":
    unittest.main()
