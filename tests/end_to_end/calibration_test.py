"""From tools/collect (with a fake torch) over `calibrate` to a simulation that says so."""

import json
import sys
import unittest

from tessera_command import DATA_PARALLEL, ROOT, EndToEnd

sys.path.insert(0, str(ROOT / "tests/tools"))
from collect_runs import rows_of, run_collect  # noqa: E402

GPU = "H100-SXM5-80GB"
DRIVER_NAME = "NVIDIA H100 80GB HBM3"
STEP_COLUMNS = ("id,gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,ffn,vocab,seq_len,tp,pp,dp,"
                "micro_batch,global_batch,step_time_s\n")


class Calibration(EndToEnd):
    def collect(self, *arguments):
        result = run_collect(self.folder, *arguments, FAKE_TORCH_GPU=DRIVER_NAME)
        self.assertEqual(result.returncode, 0, result.stderr)

    def calibrate(self, source, file, out="overlay.yaml"):
        result = self.run_tessera("calibrate", "gpu", "--gpu", GPU, source, file, "--out", out, "--format", "json")
        self.assertEqual((result.returncode, result.stderr), (0, f"info: wrote {out}\n"))
        return json.loads(result.stdout)

    def test_collected_kernels_are_predicted_and_correct_their_gpu(self):
        self.collect("--suite", "fp32", "--small", "--out", "h100.csv")
        groups = json.loads(self.answer("predict", "--kernels", "h100.csv", "--format", "json"))["groups"]
        self.assertEqual(sum(group["n"] for group in groups), len(rows_of(self.folder / "h100.csv")))
        answer = self.calibrate("--from-kernels", "h100.csv")
        self.assertEqual((answer["overlay"]["gpu"], answer["overlay"]["mode"]), (GPU, "calibrated"))
        # The fake GPU multiplies at 25 TFLOP/s whatever the shape and reads at 3 TB/s.
        errors = {group["op"]: group for group in answer["fitted"]}
        for op in ("linear", "bmm"):
            self.assertLess(errors[op]["mean_abs_error_pct_after"], errors[op]["mean_abs_error_pct_before"])
        self.assertTrue(answer["held_out"])
        overlay = f"overlays=[{self.folder}/overlay.yaml]"
        before, after = self.simulate(DATA_PARALLEL), self.simulate(DATA_PARALLEL, overlay)
        self.assertEqual(before["predictor"]["mode"], "zero-shot")
        self.assertEqual(after["predictor"], {"form": "tessera", "mode": "calibrated",
                                              "effect": f"{answer['overlay']['rows']} kernels of h100.csv",
                                              "notes": []})
        self.assertNotEqual(before["step_time_s"], after["step_time_s"])
        table = self.answer("simulate", DATA_PARALLEL, "--set", overlay, "--notes")
        self.assertEqual(table.splitlines()[3], f"calibrated for {GPU}: {after['predictor']['effect']}")

    def test_collected_bf16_rows_make_an_overlay_of_tensor_cores(self):
        self.collect("--suite", "tensor-core", "--small", "--dtypes", "bf16", "--out", "bf16.csv")
        answer = self.calibrate("--from-kernels", "bf16.csv")
        self.assertEqual(answer["overlay"]["precision"], "bf16")
        fitted = {figure["name"] for figure in answer["figures"] if figure["how"] == "fitted"}
        self.assertIn("tensor.compute", fitted)
        self.assertTrue(all(name.startswith("tensor.") for name in fitted), fitted)

    def test_collected_steps_are_read_and_refused_where_arithmetic_cannot_explain_them(self):
        self.collect("--suite", "steps", "--small", "--out", "steps.csv")  # the fake steps take a millisecond
        self.assert_fails(3, "no scalar on the arithmetic explains these steps", "calibrate", "gpu", "--gpu", GPU,
                          "--from-steps", "steps.csv", "--out", "overlay.yaml")

    def test_steps_that_are_30_percent_slower_than_predicted_stretch_the_arithmetic(self):
        # A step of four GPUs, Megatron: the row of this very scenario.
        predicted = self.simulate(DATA_PARALLEL)["step_time_s"]
        self.plant("steps.csv", STEP_COLUMNS + f"a,{GPU},4,megatron-local,fp32,gpt2-large,gpt,36,1280,20,5120,50257,1024,1,1,4,"
                                               f"1,4,{1.3 * predicted}\n")
        answer = self.calibrate("--from-steps", "steps.csv")
        self.assertAlmostEqual(answer["ratio_before"], 1 / 1.3, places=6)
        self.assertAlmostEqual(answer["ratio_after"], 1, places=5)
        after = self.simulate(DATA_PARALLEL, f"overlays=[{self.folder}/overlay.yaml]")
        self.assertAlmostEqual(after["step_time_s"] / predicted, 1.3, places=4)
        self.assertEqual(after["predictor"]["mode"], "calibrated-steps")
        self.assertEqual(after["predictor"]["effect"], "1 training step of steps.csv")

    def test_the_same_file_gives_the_same_overlay(self):
        self.collect("--suite", "fp32", "--small", "--out", "h100.csv")
        first, second = (self.calibrate("--from-kernels", "h100.csv", out) for out in ("a.yaml", "b.yaml"))
        self.assertEqual(first, second)
        self.assertEqual((self.folder / "a.yaml").read_bytes(), (self.folder / "b.yaml").read_bytes())

    def test_runs_that_were_not_calibrated_on_are_validated_with_the_overlay(self):
        run = GPU + ",8,megatron,bf16,{},gpt,{},2048,16,8192,50304,2048,1,1,8,4,32,{}\n"
        self.plant("runs.csv", STEP_COLUMNS + "a," + run.format("small", 8, 1) + "b," + run.format("large", 24, 1))
        simulated = {row["id"]: row["simulated_s"] for row in self.validated("runs.csv")}
        # A GPU on which both take 1.2 times as long; one of the two is measured.
        self.plant("one.csv", STEP_COLUMNS + "a," + run.format("small", 8, 1.2 * simulated["a"]))
        self.calibrate("--from-steps", "one.csv")
        corrected = {row["id"]: row["simulated_s"] for row in self.validated("runs.csv", "--overlay", "overlay.yaml")}
        self.assertAlmostEqual(corrected["a"] / simulated["a"], 1.2, places=4)
        self.assertAlmostEqual(corrected["b"] / simulated["b"], 1.2, delta=0.05)
        self.assert_fails(3, "overlay.yaml: is a second overlay of " + GPU, "validate", "runs.csv", "--overlay",
                          "overlay.yaml", "overlay.yaml")
        self.plant("a100.csv", STEP_COLUMNS + "a," + run.format("small", 8, 1).replace(GPU, "A100-SXM4-80GB"))
        self.assert_fails(3, f"is an overlay of {GPU}, of which no row is simulated", "validate", "a100.csv",
                          "--overlay", "overlay.yaml")

    def validated(self, *arguments):
        return json.loads(self.answer("validate", *arguments, "--format", "json"))["rows"]

    def test_one_source_is_needed(self):
        result = self.run_tessera("calibrate", "gpu", "--gpu", GPU, "--out", "overlay.yaml")
        self.assertEqual(result.returncode, 2)
        self.assert_fails(3, "nowhere.csv: cannot be read", "calibrate", "gpu", "--gpu", GPU, "--from-steps",
                          "nowhere.csv", "--out", "overlay.yaml")

    def test_every_validated_row_names_its_mode(self):
        rows = json.loads(self.answer("reproduce", "neusight", "--format", "json"))["rows"]
        modes = {row["gpu"]: row["predictor_mode"] for row in rows}
        self.assertEqual(modes["V100-PCIe-32GB"], "calibrated")
        self.assertEqual(modes[GPU], "zero-shot")


if __name__ == "__main__":
    unittest.main()
