"""`explain-kernel`: how the prediction for one kernel comes about."""

import json
import math
import os
import unittest

from kernel_rows import kernel_csv
from tessera_command import EndToEnd

BAD_INPUT, USAGE = 3, 2
H100 = ("--gpu", "H100-SXM5-80GB")
T4 = ("--gpu", "T4")
LARGE_LINEAR = ("--op", "linear", "--m", "8192", "--n", "4096", "--k", "4096")
SIZES = {"product": ("--m", "512", "--n", "384", "--k", "256"), "rows": ("--rows", "1024", "--cols", "768"),
         "conv2d": ("--in-channels", "64", "--out-channels", "96", "--input-size", "28", "--kernel-size", "3")}
PRODUCTS = ("linear", "bmm")
ROW_OPS = ("add", "mul", "div", "pow", "add_scalar", "mul_scalar", "div_scalar", "pow_scalar", "relu", "gelu", "tanh",
           "softmax", "layer_norm")


class ExplainKernel(EndToEnd):
    def run_tessera(self, *arguments, **options):
        """Without measurements that may lie beside the sources."""
        nowhere = {**os.environ, "TESSERA_MEASUREMENTS": str(self.folder / "nowhere")}
        return super().run_tessera(*arguments, env=nowhere, **options)

    def explain(self, *arguments):
        return json.loads(self.answer("explain-kernel", *arguments, "--format", "json"))

    def refuse(self, message, *arguments):
        self.assert_fails(BAD_INPUT, message, "explain-kernel", *T4, *arguments)

    def test_blocks_and_waves_of_a_large_linear_layer(self):
        story = self.explain(*H100, *LARGE_LINEAR)
        self.assertEqual(story["schema"], "tessera.kernel/1")
        self.assertEqual((story["sizes"], story["layout"]), ({"batch": 1, "m": 8192, "n": 4096, "k": 4096}, "tn"))
        tiles = {(c["tile_m"], c["tile_n"]): c for c in story["product"]["candidates"] if c["split"] == 1}
        tile = tiles[128, 128]
        self.assertEqual(tile["blocks"], 64 * 32)
        self.assertAlmostEqual(tile["waves"], 2048 / 132)  # 15.5
        self.assertEqual(tile["blocks_per_sm"], 16)
        self.assertAlmostEqual(sum(c["share"] for c in story["product"]["candidates"]), 1)
        self.assertEqual(story["likely_tile"], max(tiles.values(), key=lambda c: c["share"]))
        self.assertEqual(story["gpu"]["sms"], 132)
        self.assertEqual((story["effect"]["mode"], story["effect"]["provenance"]), ("zero-shot", "rule"))

    def test_the_times_add_up(self):
        for op, sizes in (("linear", "product"), ("gelu", "rows"), ("conv2d", "conv2d")):
            times = self.explain(*T4, "--op", op, *SIZES[sizes])["times"]
            busy = max(times["joined_s"], times["roofline_s"])
            self.assertAlmostEqual((busy + times["queue_floor_s"]) / times["duration_s"], 1, places=6)
            self.assertAlmostEqual(times["roofline_s"] / times["duration_s"], times["utilization"])
            self.assertAlmostEqual(times["duration_s"] + times["launch_gap_s"], times["isolated_s"])
            interval = times["interval"]
            width = 1.2816 * math.hypot(interval["gpu_log_sd"], interval["shape_log_sd"])  # 80 % of a normal one
            self.assertAlmostEqual(math.log(interval["high_s"] / times["duration_s"]), width)
            self.assertAlmostEqual(math.log(times["duration_s"] / interval["low_s"]), width)

    def test_a_convolution_has_the_precision_that_was_asked_for(self):
        durations = [self.explain("--gpu", "A100-SXM4-80GB", "--op", "conv2d", *SIZES["conv2d"], "--precision", p)
                     ["times"]["duration_s"] for p in ("fp32", "fp16")]
        self.assertLess(durations[1], durations[0])

    def test_a_gelu_of_16_bits_has_the_instructions_of_a_steps(self):
        time = {(op, p): self.explain("--gpu", "A100-SXM4-80GB", "--op", op, "--rows", "16384", "--cols", "8192",
                                      "--precision", p)["times"]["duration_s"]
                for op in ("gelu", "relu") for p in ("bf16", "fp32")}
        self.assertGreater(time["gelu", "bf16"], 1.2 * time["relu", "bf16"])  # 54 instructions against 11
        self.assertAlmostEqual(time["gelu", "fp32"] / time["relu", "fp32"], 1, places=2)  # memory alone

    def test_kernels_in_words_are_those_of_the_options(self):
        pairs = (("bf16 gemm 4096x4096x1024", "--op linear --m 4096 --n 4096 --k 1024 --precision bf16"),
                 ("softmax 8192x1024 fp16", "--op softmax --rows 8192 --cols 1024 --precision fp16"),
                 ("bmm 8x512x256x64 nt", "--op bmm --batch 8 --m 512 --n 256 --k 64 --layout nt"),
                 ("flash3 attention 4x32x4096x128 full backward kv-heads=8",
                  "--op attention --batch 4 --heads 32 --seq 4096 --head-dim 128 --kv-heads 8 --implementation flash3 "
                  "--direction backward --mask full"),
                 ("grouped_gemm 100,28,0 4096x1024", "--op grouped_gemm --groups 100,28,0 --n 4096 --k 1024"))
        for words, options in pairs:
            self.assertEqual(self.explain(*H100, words), self.explain(*H100, *options.split()), words)

    def test_tensor_cores_and_attention_add_up_and_say_what_was_never_measured(self):
        for words, notes in (("bf16 gemm 4096x4096x1024", 0), ("bf16 gemm 4096x4096x1024 nt", 1),
                             ("fp8 gemm 4096x4096x1024", 1), ("flash3 attention 4x32x4096x128", 0),
                             ("flash3 attention 4x32x4096x128 backward", 1),
                             ("grouped_gemm 100,28,0 4096x1024", 1), ("bf16 layer_norm 8192x1024", 1)):
            story = self.explain(*H100, words)
            times = story["times"]
            busy = max(times["joined_s"], times["roofline_s"])
            self.assertAlmostEqual((busy + times["queue_floor_s"]) / times["duration_s"], 1, places=6, msg=words)
            self.assertEqual(len(story["notes"]), notes, words)
        self.assertEqual(self.explain(*H100, "fp8 gemm 512x512x512")["gpu"]["peak_flops_per_s"], 1979e12)

    def test_what_a_gpu_cannot_run_is_refused(self):
        self.refuse("one of fp32, fp16", "bf16 gemm 512x512x512")
        self.refuse("model attention unfused", "flash2 attention 1x8x512x64")
        self.refuse("'3' is not understood", "linear 3")
        self.refuse("T4: multiplies int8, but a single product in it is not modelled", "int8 gemm 512x512x512")
        self.refuse("'nvfp4 gemm' is not understood; name one operator, its sizes and its format",
                    "nvfp4 gemm 512x512x512")
        self.refuse("kv-heads", "attention 1x8x512x64 kvheads=8")
        self.refuse("--groups", "--op", "grouped_gemm", "--n", "64", "--k", "64")

    def test_products_in_fp4_run_at_their_own_peak(self):
        for gpu in ("GB200", "B300-SXM-288GB", "RTX-5090"):
            story = self.explain("--gpu", gpu, "fp4 gemm 8192x8192x8192")
            self.assertEqual(len(story["notes"]), 1, story["notes"])  # never measured; no word on the peak
            self.assertIn("half of that of fp4", story["effect"]["reason"])

    def test_it_explains_what_predict_predicts(self):
        rows = "gpu,op,batch,m,n,k,rows,cols\nT4,bmm,6,512,384,256,,\nT4,softmax,,,,,1024,768\n"
        self.plant("kernels.csv", rows)
        predicted = [float(line.rsplit(",", 1)[1]) for line in
                     self.answer("predict", "--kernels", "kernels.csv", "--format", "csv").splitlines()[1:]]
        product = self.explain(*T4, "--op", "bmm", "--batch", "6", *SIZES["product"])
        softmax = self.explain(*T4, "--op", "softmax", *SIZES["rows"])
        for story, microseconds in zip((product, softmax), predicted):
            self.assertAlmostEqual(story["times"]["isolated_s"] * 1e6 / microseconds, 1, places=4)

    def test_every_operator_is_explained_in_both_forms(self):
        for op in (*PRODUCTS, *ROW_OPS, "conv2d"):
            sizes = SIZES["product" if op in PRODUCTS else "conv2d" if op == "conv2d" else "rows"]
            with self.subTest(op):
                story = self.explain(*T4, "--op", op, *sizes)
                self.assertEqual(story["op"], op)
                self.assertEqual(story["product"] is not None, op not in ROW_OPS)
                self.assertEqual(story["traffic"] is not None, op in ROW_OPS)
                table = self.answer("explain-kernel", *T4, "--op", op, *sizes)
                self.assertTrue(table.startswith(f"{op}: "))
                self.assertRegex(table, rf"(?m)^  limited by +{story['times']['limit']}$")

    def test_operand_order_changes_the_time_and_is_shown(self):
        usual = self.explain(*H100, *LARGE_LINEAR)
        turned = self.explain(*H100, *LARGE_LINEAR, "--layout", "nt")
        self.assertEqual(turned["layout"], "nt")
        self.assertEqual((usual["product"]["layout_slowdown"], turned["product"]["row_slowdown"]), (1, 1))
        self.assertNotEqual(turned["product"]["layout_slowdown"], 1)

    def test_sizes_beyond_the_training_data_are_named(self):
        self.assertIsNone(self.explain(*T4, "--op", "bmm", *SIZES["product"])["extrapolated"])
        far = self.explain(*T4, "--op", "bmm", "--m", "8192", "--n", "64", "--k", "64")["extrapolated"]
        self.assertEqual(far["input"], "m")
        self.assertGreater(far["factor"], 4)  # batched products were timed up to about 1000

    def test_an_overlay_takes_effect_and_is_named(self):
        self.plant("kernels.csv", kernel_csv(gpus=("H100-SXM5-80GB",)))
        result = self.run_tessera("calibrate", "gpu", *H100, "--from-kernels", "kernels.csv", "--out", "h100.yaml")
        self.assertEqual(result.returncode, 0, result.stderr)
        shipped = self.explain(*H100, *LARGE_LINEAR)
        own = self.explain(*H100, *LARGE_LINEAR, "--overlay", "h100.yaml")
        self.assertEqual((own["effect"]["mode"], own["effect"]["provenance"]), ("calibrated", "calibrated"))
        self.assertIn("kernels of kernels.csv", own["effect"]["reason"])
        # The invented GPU multiplies at 5 TFLOP/s.
        self.assertGreater(own["times"]["duration_s"], 2 * shipped["times"]["duration_s"])
        self.refuse("h100.yaml: is an overlay of H100-SXM5-80GB, but the GPU is T4", *LARGE_LINEAR, "--overlay",
                    "h100.yaml")
        self.assert_fails(BAD_INPUT, "second overlay", "explain-kernel", *H100, *LARGE_LINEAR, "--overlay", "h100.yaml",
                          "--overlay", "h100.yaml")

    def test_nearest_measured_calls_are_those_of_the_own_gpu_first(self):
        self.plant("data/kernels/fp32.csv", kernel_csv(gpus=("V100-PCIe-32GB", "T4")))
        story = self.explain(*T4, "--op", "linear", "--m", "1024", "--n", "1024", "--k", "1024", "--data", "data")
        self.assertEqual(story["measurements"], "fp32.csv")
        self.assertEqual([near["gpu"] for near in story["nearest"]], ["T4"] * 4 + ["V100-PCIe-32GB"])
        first, last = story["nearest"][0], story["nearest"][-1]
        self.assertEqual((first["sizes"]["m"], first["octaves"], first["split"]), (1024, 0, "train"))
        self.assertEqual(last["octaves"], 0)
        # Of a call timed as the row was, here alone: with its launch gap.
        self.assertAlmostEqual(first["predicted_s"], story["times"]["isolated_s"])
        self.assertAlmostEqual(first["measured_s"], 1e-6 * (10 + 2 * 1024**3 / 5e6))

    def test_missing_measurements_are_said_and_a_folder_that_is_named_has_to_be_there(self):
        self.assertIn("\nnearest measured calls: no fp32.csv found; name its folder with --data\n",
                      self.answer("explain-kernel", *T4, *LARGE_LINEAR))
        self.refuse("cannot be read", *LARGE_LINEAR, "--data", "nowhere")

    def test_what_is_wrong_is_named(self):
        self.refuse("--op: 'linar' is not an operator; did you mean linear?", "--op", "linar")
        self.refuse("--k: is missing; linear needs [--batch], --m, --n, --k", *LARGE_LINEAR[:-2])
        for size in ("0", "-5", "1099511627776"):
            self.refuse(f"--rows: {size} is not a size", "--op", "add", "--rows", size, "--cols", "8")
        self.refuse("--rows: linear has no such size", *LARGE_LINEAR, "--rows", "8")
        self.refuse("--layout: gelu has no operand order", "--op", "gelu", *SIZES["rows"], "--layout", "nn")
        self.refuse("more than 2^58 elements", "--op", "add", "--rows", str(2**39), "--cols", str(2**39))
        self.refuse("a window of 7 does not fit into the padded image", "--op", "conv2d", "--in-channels", "3",
                    "--out-channels", "8", "--input-size", "4", "--kernel-size", "7", "--padding", "1")
        self.assert_fails(BAD_INPUT, "did you mean H100-SXM5-80GB?", "explain-kernel", "--gpu", "H10-SXM5-80GB",
                          *LARGE_LINEAR)
        self.assert_fails(USAGE, "--layout", "explain-kernel", *T4, *LARGE_LINEAR, "--layout", "tt")

    def test_every_problem_is_told_at_once(self):
        result = self.run_tessera("explain-kernel", *T4, "--op", "linear", "--m", "0", "--k", "-1")
        self.assertEqual((result.returncode, result.stdout), (BAD_INPUT, ""))
        self.assertEqual([line.split(": ")[1] for line in result.stderr.splitlines()], ["--m", "--n", "--k"])


if __name__ == "__main__":
    unittest.main()
