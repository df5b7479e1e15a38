"""tessera fit says whether a step fits, as simulate does, and what it suggests does what it says."""

import json
import subprocess
import sys
import unittest

from import_job_test import DEEPSPEED, LLAMA_CONFIG, MEGATRON
from tessera_command import DATA_PARALLEL, PIPELINE, ROOT, EndToEnd, settings


class Fit(EndToEnd):
    def fit(self, *arguments, code=0):
        result = self.run_tessera("fit", *arguments, "--format", "json")
        if code is not None:
            self.assertEqual((result.returncode, result.stderr), (code, ""), arguments)
        return json.loads(result.stdout)

    def needed(self, scenario, *assignments):
        memory = self.simulate(scenario, *assignments)["memory"]
        return memory["device_bytes"]

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name

    def test_a_model_alone_is_trained_in_what_the_gpu_has(self):
        for cluster, precision in (("dgx-h100", "bf16"), ("dgx-1-v100", "fp16"), ("dgx-1-p100", "fp32")):
            self.assertEqual(self.fit("gpt2", cluster)["precision"], precision, cluster)

    def test_outcomes_are_counted_by_the_verdict_that_fit_would_give(self):
        # 0.869 to 1.143 of what is simulated, on 80 GiB: 60 GiB take at most 68.6, 80 between 69.5 and 91.4, 100 at least 86.9.
        jobs = [(60, "ok"), (60, "ok"), (60, "oom"), (80, "ok"), (80, "oom"), (100, "oom")]
        rows = [{"model": "m", "device_GiB": need, "outcome": outcome, "skipped": ""} for need, outcome in jobs]
        rows += [{"model": "m", "device_GiB": None, "outcome": "oom", "skipped": "not simulated"}]
        file = self.write("rows.json", json.dumps({"rows": rows}))
        table = subprocess.run([sys.executable, "-B", ROOT / "tools/fit_calibration", "80", "--judged", file], cwd=self.folder,
                               capture_output=True, text=True, check=True).stdout
        self.assertIn("6 jobs on GPUs of 80.00 GiB; interval 0.869 to 1.143", table)
        for line in (r"all +fits +3 +2 +66\.7 %", r"all +within the error +2 +1 +50\.0 %", r"all +does not fit +1 +0 +0\.0 %"):
            self.assertRegex(table, line)

    def test_parts_add_up_to_what_simulate_says(self):
        for scenario in (DATA_PARALLEL, PIPELINE):
            answer = self.fit(scenario)
            self.assertEqual(answer["needed_bytes"], self.needed(scenario))
            self.assertEqual(sum(answer["parts_bytes"].values()), answer["needed_bytes"])
            self.assertEqual(answer["margin_bytes"], answer["capacity_bytes"] - answer["needed_bytes"])

    def test_the_largest_sizes_are_the_last_that_fit(self):
        answer = self.fit(PIPELINE)
        size = answer["largest_micro_batch"]["fits"]
        layout = answer["layout"]
        batches = layout["global_batch"] // (layout["data"] * layout["micro_batch"])

        def need(micro_batch):
            return self.fit(PIPELINE, *settings(
                f"training.micro_batch={micro_batch}", f"training.micro_batches={batches}",
                f"training.global_batch={micro_batch * batches * layout['data']}"), code=None)

        self.assertLessEqual(need(size)["needed_bytes"], answer["capacity_bytes"])
        self.assertGreater(need(size + 1)["needed_bytes"], answer["capacity_bytes"])

    def test_changes_are_what_simulate_makes_of_their_settings(self):
        scenario = self.write("job.yaml", "model: llama-3-8b\ncluster: dgx-h100\n"
                              "training: {framework: megatron, precision: bf16, sequence_length: 4096, "
                              "global_batch: 16, micro_batch: 2}\nparallelism: {data: 8}\n")
        answer = self.fit(scenario, code=4)
        self.assertEqual(answer["verdict"], "does_not_fit")
        self.assertGreaterEqual(len(answer["changes"]), 4)
        times = [change["step_time_s"] for change in answer["changes"]]
        self.assertEqual(times, sorted(times))
        for change in answer["changes"][:3]:
            result = self.run_tessera("simulate", scenario, "--format", "json", *settings(*change["settings"]))
            simulated = json.loads(result.stdout)
            self.assertEqual(simulated["memory"]["device_bytes"], change["needed_bytes"], change["change"])
            self.assertEqual(simulated["step_time_s"], change["step_time_s"], change["change"])

    def test_any_number_of_processes_gives_the_same_answer(self):
        one, four = (self.run_tessera("fit", "llama-3-8b", "dgx-h100", "--jobs", jobs) for jobs in (1, 4))
        self.assertEqual(one.stdout, four.stdout)

    def test_a_hugging_face_model_on_a_single_card(self):
        config = self.write("config.json", json.dumps(LLAMA_CONFIG))
        # 1.1 billion parameters at 8 B, 2,048 tokens with all scores: 21.6 GiB of 24.0, which a seventh more would not fit.
        answer = self.fit(config, "rtx-4090-pcie-1", "--framework", "hf-eager")
        self.assertEqual((answer["read_as"], answer["gpus"], answer["gpu"]), ("model", 1, "RTX-4090"))
        self.assertIn("judged", answer["interval"]["basis"])
        self.assertEqual(answer["verdict"], "within_error")
        self.assertLess(answer["margin_bytes_80"][0], 0)
        self.assertGreater(answer["margin_bytes"], 0)
        fused = self.fit(config, "rtx-4090-pcie-1")  # sdpa, which transformers chooses by itself
        self.assertEqual(fused["verdict"], "fits")

    def test_a_model_too_large_for_a_card_exits_with_4(self):
        answer = self.fit("qwen2.5-7b", "rtx-4090-pcie-1", code=4)
        self.assertEqual(answer["verdict"], "does_not_fit")
        self.assertLess(answer["margin_bytes_80"][1], 0)
        # Four copies of 7.6 billion parameters in bf16: weights, gradients, two moments.
        state = sum(answer["parts_bytes"][part] for part in ("weights", "gradients", "optimizer"))
        self.assertAlmostEqual(state / (8 * 7.616e9), 1, delta=0.01)

    def test_the_exit_code_is_that_of_simulate_also_within_the_error(self):
        # DDP holds gradients twice, in buckets of their own: 92 GiB with Adam's states in bf16.
        answer = self.fit("llama-3-8b", "dgx-h100", code=4)
        self.assertEqual(answer["verdict"], "does_not_fit")
        answer = self.fit("llama-3-8b", "dgx-h100", "--set", "training.mixed_precision.optimizer_states=int8",
                          "--sequence-length", "3072", code=4)
        self.assertEqual(answer["verdict"], "within_error")
        self.assertLess(answer["margin_bytes"], 0)

    def test_experts_are_spread_where_the_profile_can(self):
        answer = self.fit("mixtral-8x7b", "dgx-h100", "--nodes", "4", "--framework", "megatron", code=4)
        spread = [change for change in answer["changes"] if "parallelism.expert=8" in change["settings"]]
        self.assertTrue(spread, [change["change"] for change in answer["changes"]])
        self.assertTrue(all(change["gpus"] == 32 for change in spread))
        # Models of Hugging Face hold all experts on every GPU: said so, not left out.
        answer = self.fit("mixtral-8x7b", "dgx-h100", code=4)
        refused = {change["change"]: change["reason"] for change in answer["not_possible"]}
        self.assertIn("hold all experts on every GPU", refused["ep 2"])

    def test_launch_scripts_and_deepspeed_configs_are_read(self):
        script = self.write("run.sh", MEGATRON)
        answer = self.fit(script, "dgx-h100-x8-rail")
        self.assertEqual((answer["read_as"], answer["gpus"]), ("Megatron-LM job", 32))
        config = self.write("ds_config.json", json.dumps(DEEPSPEED | {"zero_optimization": {"stage": 3}}))
        answer = self.fit(config, "dgx-h100-x2", "--model", "llama-2-7b")
        self.assertEqual((answer["read_as"], answer["layout"]["sharding"]), ("DeepSpeed job", 3))

    def test_what_cannot_be_read_is_refused_with_a_way_out(self):
        for arguments, words in ((("meta-llama/Llama-3-8B", "dgx-h100"), "config.json"),
                                 (("gpt2",), "does not name a cluster"),
                                 ((self.write("x.json", "{}"), "dgx-h100"), "neither")):
            result = self.run_tessera("fit", *arguments)
            self.assertEqual((result.returncode, result.stdout), (3, ""))
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main()
