"""tools/collect writes what it promises, with a fake torch whose times are known."""

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

from collect_runs import ROOT, rows_of, run_collect

sys.path.insert(0, str(ROOT / "tools/collect"))
import gpu_state  # noqa: E402
import kernels  # noqa: E402
import output  # noqa: E402
import plans  # noqa: E402
import timing  # noqa: E402

try:
    import torch
except ImportError:  # not a package of tools/packages.txt
    torch = None

SMALL = len(plans.plan_of("fp32", [], True))
# Columns of the published files that the suites mirror.
FP32 = ("gpu,op,split,batch,m,n,k,rows,cols,latency_us,kernel_name,n_kernels,grid_x,grid_y,grid_z,block_x,block_y,"
        "block_z,source").split(",")
TENSOR_CORE = "gpu,dtype,m,n,k,latency_us,stack,source".split(",")


class Collect(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.log = self.folder / "log"

    def collect(self, *arguments, returns=0, **environment):
        result = run_collect(self.folder, *arguments, FAKE_TORCH_LOG=str(self.log), **environment)
        self.assertEqual(result.returncode, returns, result.stderr)
        return result

    def fp32(self, *arguments, **options):
        return self.collect("--suite", "fp32", "--small", "--out", "k.csv", *arguments, **options)

    def assert_nothing_half_written(self):
        self.assertEqual([path.name for path in self.folder.iterdir() if "tmp" in path.name], [])

    def test_a_dry_run_prints_the_plan_and_writes_nothing(self):
        result = self.collect("--suite", "fp32", "--small", "--dry-run", PYTHONPATH="")
        self.assertEqual(result.stdout.splitlines()[-1], f"{SMALL} rows")
        self.assertEqual(result.stdout.count("\n"), SMALL + 1)
        self.assertFalse((self.folder / "k.csv").exists())

    def test_fp32_rows_have_the_columns_and_the_times_of_the_gpu(self):
        self.fp32()
        rows = rows_of(self.folder / "k.csv")
        self.assertEqual(len(rows), SMALL)
        self.assertEqual(list(rows[0])[:len(FP32)], FP32)
        for row in rows:
            self.assertEqual((row["gpu"], row["timing"], row["l2"]), ("H200-SXM5-141GB", "graph", "warm"))
            if row["op"] in ("linear", "bmm"):
                flops = 2 * int(row["batch"]) * int(row["m"]) * int(row["n"]) * int(row["k"])
                expected = 2 + flops / 25e12 * 1e6
            else:
                operands = 3 if row["op"] in plans.BINARY else 2
                expected = 2 + 4 * operands * int(row["rows"]) * int(row["cols"]) / 3e12 * 1e6
            self.assertAlmostEqual(float(row["latency_us"]) / expected, 1, places=4, msg=row)
        self.assertIn("capture tf32=False", self.log.read_text())
        self.assertNotIn("capture tf32=True", self.log.read_text())

    def test_a_fifth_of_the_shapes_is_kept_for_judging(self):
        splits = [call.split for call in plans.plan_of("fp32", [], False) if call.op == "linear"]
        self.assertEqual(splits.count("test"), len(splits) // 5)

    def test_where_nothing_can_be_captured_calls_queue_behind_a_sleep(self):
        self.fp32(FAKE_TORCH_NO_GRAPH="1")
        rows = rows_of(self.folder / "k.csv")
        self.assertEqual({row["timing"] for row in rows}, {"queue"})
        self.assertIn("sleep", self.log.read_text())
        # 2 * 128 * 768 * 768 / 25e12 s = 6.04 us and 2 us per call: the sleep is not in it.
        self.assertAlmostEqual(float(rows[0]["latency_us"]), 2 + 2 * 128 * 768 * 768 / 25e12 * 1e6, places=3)

    def test_flushing_l2_is_taken_off_and_said(self):
        self.fp32("--flush-l2")
        rows = rows_of(self.folder / "k.csv")
        self.assertEqual({row["l2"] for row in rows}, {"flushed"})
        self.assertAlmostEqual(float(rows[0]["latency_us"]), 2 + 2 * 128 * 768 * 768 / 25e12 * 1e6, places=3)

    def test_the_sidecar_holds_the_conditions_and_the_state_around_every_row(self):
        self.fp32("--warm-up-seconds", "20")  # a busy machine reads no four clocks in a moment
        sidecar = json.loads((self.folder / "k.csv.json").read_text())
        session = sidecar["sessions"][0]
        self.assertEqual(session["conditions"]["gpu_name"], "NVIDIA H200")
        self.assertEqual(session["conditions"]["torch"], "0.fake")
        self.assertEqual(session["conditions"]["state"]["driver"], "555.42")
        self.assertEqual(session["warm_up"]["settled"], True)
        self.assertEqual(set(session["warm_up"]["sm_clock_mhz"]), {1755})
        self.assertEqual(len(session["measured"]), SMALL)
        for record in session["measured"]:
            for state in (record["before"], record["after"]):
                self.assertEqual((state["sm_clock_mhz"], state["power_w"], state["power_cap_w"],
                                  state["persistence_mode"], state["temperature_c"]),
                                 (1755, 651.3, 700, "Enabled", 64))

    def test_ctrl_c_keeps_whole_rows_and_resume_adds_the_missing_ones(self):
        result = self.fp32(returns=130, FAKE_TORCH_INTERRUPT_AT="20")
        self.assertIn("--resume", result.stderr)
        before = rows_of(self.folder / "k.csv")
        self.assertEqual(len(before), 19)  # one capture per row
        self.assertTrue(all(row["latency_us"] and row["l2"] for row in before))
        self.assert_nothing_half_written()
        self.fp32("--resume")
        after = rows_of(self.folder / "k.csv")
        self.assertEqual(after[:len(before)], before)
        self.assertEqual(len(after), SMALL)
        self.assertEqual(len({tuple(row[c] for c in FP32[1:9]) for row in after}), SMALL)
        self.assertEqual(len(json.loads((self.folder / "k.csv.json").read_text())["sessions"]), 2)

    def test_a_file_is_never_overwritten_or_mixed(self):
        (self.folder / "k.csv").write_text("a,b\n1,2\n")
        self.assertIn("k.csv exists; give --resume", self.fp32(returns=3).stderr)
        self.assertIn("has other columns", self.fp32("--resume", returns=3).stderr)
        (self.folder / "k.csv").unlink()
        self.fp32(FAKE_TORCH_GPU="NVIDIA L4")
        self.assertIn("holds rows of L4, this GPU is H200-SXM5-141GB", self.fp32("--resume", returns=3).stderr)

    def test_tensor_core_rows_have_their_columns(self):
        self.collect("--suite", "tensor-core", "--small", "--dtypes", "bf16,fp16", "--out", "t.csv")
        rows = rows_of(self.folder / "t.csv")
        self.assertEqual(list(rows[0])[:len(TENSOR_CORE)], TENSOR_CORE)
        self.assertEqual({row["dtype"] for row in rows}, {"bf16", "fp16"})
        self.assertEqual(len(rows), len(plans.plan_of("tensor-core", ["bf16", "fp16"], True)))

    def test_steps_have_the_columns_of_training_runs(self):
        self.collect("--suite", "steps", "--small", "--out", "s.csv")
        rows = rows_of(self.folder / "s.csv")
        self.assertEqual(tuple(rows[0]), output.STEP_COLUMNS)
        self.assertEqual([(row["model"], row["framework"]) for row in rows],
                         [("gpt2-large", "hf_eager"), ("gpt2-large", "hf_compiled"),
                          ("bert-large", "hf_eager"), ("bert-large", "hf_compiled")])
        for row in rows:
            self.assertGreaterEqual(float(row["step_time_s"]), 1e-3)
            self.assertEqual((row["peak_memory_GiB"], row["precision"]), ("3.000", "fp32"))

    def test_an_unknown_gpu_needs_an_id_of_the_catalog(self):
        unknown = {"FAKE_TORCH_GPU": "NVIDIA Unheard-of 9000"}
        self.assertIn("give --gpu-id", self.fp32(returns=3, **unknown).stderr)
        self.assertIn("--gpu-id H201 is not in configs/hw/gpus", self.fp32("--gpu-id", "H201", returns=3, **unknown).stderr)
        self.fp32("--gpu-id", "L40S", **unknown)
        self.assertEqual(rows_of(self.folder / "k.csv")[0]["gpu"], "L40S")

    def test_without_torch_it_says_what_to_do(self):
        (self.folder / "torch.py").write_text("raise ImportError\n")
        result = self.fp32(returns=3, PYTHONPATH=str(self.folder))
        self.assertIn("error: torch is not installed", result.stderr)


class GpuNames(unittest.TestCase):
    def test_every_id_is_in_the_catalog_and_every_gpu_of_the_catalog_has_a_name(self):
        named = {known for _, known in gpu_state.NAMES}
        self.assertLessEqual(named, set(gpu_state.catalog_ids()))
        # Boards that the driver calls as another one cannot be told by name: "MI250X / MI250" is two of them.
        self.assertEqual(set(gpu_state.catalog_ids()) - named, {"H100-SXM5-96GB-HBM2e", "GH200-80GB", "MI250", "MI250X"})

    def test_names_of_drivers(self):
        for name, known in (("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"), ("NVIDIA H100 PCIe", "H100-PCIe-80GB"),
                            ("NVIDIA H200", "H200-SXM5-141GB"), ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
                            ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"), ("NVIDIA GH200 480GB", "GH200-96GB"),
                            ("Tesla V100-PCIE-32GB", "V100-PCIe-32GB"), ("Tesla P4", "P4"), ("Tesla T4", "T4"),
                            ("NVIDIA L4", "L4"), ("NVIDIA L40S", "L40S"), ("NVIDIA GB200", "GB200"),
                            ("NVIDIA B200", "B200-SXM-180GB"), ("NVIDIA GeForce RTX 4090", "RTX-4090"),
                            ("NVIDIA H100 NVL", "H100-NVL"), ("NVIDIA B300 SXM6 AC", "B300-SXM-288GB"),
                            ("NVIDIA A10", "A10"), ("NVIDIA A10G", "A10G"), ("NVIDIA L20", "L20"),
                            ("NVIDIA RTX A6000", "RTX-A6000"), ("Quadro RTX 6000", "Quadro-RTX-6000"),
                            ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
                            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Server"),
                            ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX-PRO-6000-MaxQ"),
                            ("Tesla V100S-PCIE-32GB", "V100S-PCIe-32GB"),
                            ("Intel(R) Arc(TM) Pro B60 Graphics", "Intel-B60"),
                            ("AMD Instinct MI300X", "MI300X"), ("AMD Instinct MI325X", "MI325X")):
            self.assertEqual(gpu_state.gpu_id(name), known)
        for name in ("NVIDIA RTX A4000", "NVIDIA H200 NVL", "NVIDIA T400", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
                     "AMD Instinct MI250X / MI250"):
            with self.assertRaises(gpu_state.UnknownGpu, msg=name):
                gpu_state.gpu_id(name)


@unittest.skipUnless(torch and hasattr(torch, "einsum"), "needs a real torch; a GPU is not needed")
class CallsOfRealTorch(unittest.TestCase):
    """Every operator of the plan is what its row says, on the CPU."""

    def setUp(self):
        kernels.DEVICE, kept = "cpu", kernels.DEVICE
        self.addCleanup(setattr, kernels, "DEVICE", kept)

    def test_products_have_the_shape_of_their_row(self):
        bmm = kernels.runnable(torch, plans.Call("bmm", batch=2, m=3, n=5, k=7))()
        self.assertEqual(tuple(bmm.shape), (2, 3, 5))
        linear = kernels.runnable(torch, plans.Call("linear", batch=2, m=3, n=5, k=7))()
        self.assertEqual(tuple(linear.shape), (2, 3, 5))
        without_bias = kernels.runnable(torch, plans.Call("linear", dtype="bf16", m=3, n=5, k=7))()
        self.assertEqual((tuple(without_bias.shape), without_bias.dtype), ((3, 5), torch.bfloat16))

    def test_every_other_operator_keeps_its_shape_and_stays_finite(self):
        for op in plans.VECTOR_OPS:
            result = kernels.runnable(torch, plans.Call(op, rows=4, cols=6))()
            self.assertEqual(tuple(result.shape), (4, 6), op)
            self.assertTrue(bool(torch.isfinite(result).all()), op)

    def test_fp32_products_switch_tf32_off(self):
        kernels.runnable(torch, plans.Call("linear", dtype="tf32", m=3, n=5, k=7))
        kernels.runnable(torch, plans.Call("linear", batch=1, m=3, n=5, k=7))
        self.assertFalse(torch.backends.cuda.matmul.allow_tf32)
        self.assertEqual(torch.get_float32_matmul_precision(), "highest")


class Timings(unittest.TestCase):
    def test_median_and_half_of_the_interquartile_range(self):
        # Quartiles of 1..7 by the exclusive method are 2 and 6: half of 4 over 4 is 50 %.
        timed = timing.Timing("graph", [value * 1e-6 for value in range(1, 8)])
        self.assertAlmostEqual(timed.median_us(), 4)
        self.assertAlmostEqual(timed.spread_pct(), 50)

    def test_the_warm_up_ends_where_the_clock_settles(self):
        class Torch:
            class cuda:
                synchronize = staticmethod(lambda: None)

        readings = iter([1980, 1900, 1760, 1755, 1750, 1752])
        timing.estimate, kept = lambda *_: 1e-3, timing.estimate
        self.addCleanup(setattr, timing, "estimate", kept)
        seen = timing.warm_up(Torch, lambda: None, lambda: next(readings), 0.5)
        self.assertEqual((seen["settled"], len(seen["sm_clock_mhz"])), (True, 6))


class Readme(unittest.TestCase):
    def test_every_option_is_explained(self):
        readme = (ROOT / "tools/collect/README.md").read_text(encoding="utf-8")
        source = (ROOT / "tools/collect/collect.py").read_text(encoding="utf-8")
        for option in re.findall(r'add_argument\("(--[a-z0-9-]+)"', source):
            self.assertIn(f"`{option}", readme)


if __name__ == "__main__":
    unittest.main()
