"""Layers of eager families against PyTorch on the CPU: parameters, bytes saved for backward, FLOPs and launches.

Everything is exact but what PyTorch 1.13 does otherwise than the versions that the profiles stand for:
- mean keeps its input, for its number of elements alone (LlamaRMSNorm's squares, of the size of x);
- nothing else was found.
"""

import importlib.util
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/end_to_end"), str(ROOT / "tests/pytorch")]

from graph_text import blocks_of
from tessera_command import EndToEnd

TORCH = importlib.util.find_spec("torch") is not None
if TORCH:
    import torch

    import layers
    from meter import Step

B, S, H, HEADS, FFN = 2, 128, 256, 4, 1024


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class Layers(EndToEnd):
    """A layer of [2, 128, 256] with 4 heads and a feed-forward of 1024, in fp32."""

    def layer(self, model, *assignments):
        """The block `layer` of a shipped model with other sizes."""
        given = f"layers: 1, hidden: {H}, heads: {HEADS}, head_dim: {H // HEADS}, ffn: {FFN}, vocab: 1024"
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(f"model: {{extends: {model}, {given}}}\ncluster: dgx-h100\ntraining: {{framework: hf-eager, "
                            f"sequence_length: {S}, global_batch: {B}}}\n")
        overrides = [part for assignment in assignments for part in ("--set", assignment)]
        return blocks_of(self.answer("show", "graph", scenario, *overrides))["layer"]

    def hold(self, block, step, ignored=0):
        self.assertEqual(block.parameters, step.parameters)
        self.assertAlmostEqual(block.saved, step.saved - ignored, delta=600)  # printed to 1 kB
        self.assertAlmostEqual(block.forward[1], step.forward.flops * 1e-9, delta=6e-4)
        self.assertAlmostEqual(block.backward[1], step.backward.flops * 1e-9, delta=6e-4)
        self.assertEqual(block.forward[0], step.forward.total(), step.forward.kernels)
        self.assertEqual(block.backward[0], step.backward.total(), step.backward.kernels)

    @staticmethod
    def input():
        return torch.randn(B, S, H, requires_grad=True)

    def test_gpt2(self):
        self.hold(self.layer("gpt2"), Step(layers.GPT2Layer(H, HEADS, FFN, 1024), self.input()))

    def test_bert(self):
        mask = torch.zeros(B, 1, 1, S)
        self.hold(self.layer("bert-large"), Step(layers.BertLayer(H, HEADS, FFN), self.input(), mask))

    def test_llama(self):
        for kv_heads in (HEADS, 2):
            with self.subTest(kv_heads=kv_heads):
                step = Step(layers.LlamaLayer(H, HEADS, kv_heads, FFN, S), self.input(), torch.zeros(B, 1, S, S),
                            torch.arange(S)[None])
                squares = 2 * 4 * B * S * H  # of both norms: see above
                self.hold(self.layer("llama-2-7b", f"model.kv_heads={kv_heads}"), step, ignored=squares)

    def test_llama_with_adapters(self):
        attention = ("q", "k", "v", "out")
        for choice, names in (("lora_targets=all", (*attention, "gate", "up", "down")), ("lora_targets=attention", attention),
                              ("lora_modules=[q_proj, v_proj]", ("q", "v"))):
            with self.subTest(choice=choice):
                layer = layers.with_adapters(layers.LlamaLayer(H, HEADS, HEADS, FFN, S), names, rank=16)
                step = Step(layer, self.input(), torch.zeros(B, 1, S, S), torch.arange(S)[None])
                squares = 2 * 4 * B * S * H
                self.hold(self.layer("llama-2-7b", "training.lora_rank=16", f"training.{choice}"), step,
                          ignored=squares)


    def test_llama_with_dora(self):
        for choice, names in (("lora_targets=all", ("q", "k", "v", "out", "gate", "up", "down")),
                              ("lora_modules=[q_proj, v_proj]", ("q", "v"))):
            with self.subTest(choice=choice):
                layer = layers.with_adapters(layers.LlamaLayer(H, HEADS, HEADS, FFN, S), names, 16, layers.Stretched)
                step = Step(layer, self.input(), torch.zeros(B, 1, S, S), torch.arange(S)[None])
                squares = 2 * 4 * B * S * H
                self.hold(self.layer("llama-2-7b", "training.lora_rank=16", "training.dora=true", f"training.{choice}"),
                          step, ignored=squares)


@unittest.skipUnless(TORCH, "PyTorch is not installed (Debian: python3-torch)")
class ImageLayers(EndToEnd):
    """Encoder layers of [2, patches, hidden] with their published sizes."""

    def hold(self, model, module, patches, hidden):
        scenario = self.folder / "scenario.yaml"
        scenario.write_text(f"model: {model}\ncluster: dgx-h100\ntraining: {{framework: hf-eager, global_batch: 2}}\n")
        block = blocks_of(self.answer("show", "graph", scenario))["layer"]
        step = Step(module, torch.randn(2, patches, hidden, requires_grad=True))
        self.assertEqual(block.parameters, step.parameters)
        self.assertAlmostEqual(block.saved, step.saved, delta=600)
        self.assertAlmostEqual(block.forward[1], step.forward.flops * 1e-9, delta=6e-4)
        self.assertEqual(block.forward[0], step.forward.total(), step.forward.kernels)
        self.assertEqual(block.backward[0], step.backward.total(), step.backward.kernels)

    def test_vit(self):
        self.hold("vit-b-16", layers.ViTLayer(768, 12, 3072), 197, 768)

    def test_cait(self):
        self.hold("cait-xxs24", layers.CaiTLayer(192, 4, 768), 196, 192)


if __name__ == "__main__":
    unittest.main()
