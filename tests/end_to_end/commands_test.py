"""Every command answers on stdout and says nothing on stderr."""

import csv
import io
import json
import re
import unittest

from kernel_rows import kernel_csv
from tessera_command import DATA_PARALLEL, ROOT, SCENARIOS, EndToEnd

TINY_MODELS = """gpu,n_gpus,parallelism,model,mode,seq_len,batch,step_ms
A100-PCIe-40GB,1,single,gpt2,inference,128,1,10
V100-PCIe-32GB,1,single,gpt2,training,128,1,
V100-PCIe-32GB,4,tp3,gpt2,training,128,1,10
"""


class Commands(EndToEnd):
    def test_the_program_lists_its_commands_and_each_has_help(self):
        overview = self.answer("--help")
        for command in ("simulate", "predict", "train", "validate", "reproduce", "check", "explain",
                        "explain-kernel", "schema", "show", "list"):
            self.assertRegex(overview, rf"(?m)^  {command} ")
            self.assertIn(f"Usage: tessera {command} ", self.answer(command, "--help"))

    def test_version_is_that_of_the_project(self):
        version = self.answer("--version").strip()
        self.assertIn(f"project(tessera VERSION {version} ", (ROOT / "CMakeLists.txt").read_text())

    def test_simulate_prints_a_table_that_names_the_scenario(self):
        table = self.answer("simulate", DATA_PARALLEL)
        self.assertTrue(table.startswith("gpt2-large_4xh100_dp4: training step of gpt2-large on 4 x H100-SXM5-80GB\n"))
        self.assertRegex(table, r"(?m)^step time +\d+\.\d{3} ms, 80 % interval \d+\.\d{3} to \d+\.\d{3} ms$")

    def test_predict_adds_a_column_and_keeps_the_rest(self):
        given = kernel_csv(gpus=("A100-PCIe-40GB",))
        kernels = self.plant("kernels.csv", given)
        predicted = list(csv.DictReader(io.StringIO(self.answer("predict", "--kernels", kernels, "--format", "csv"))))
        for row in predicted:
            self.assertGreater(float(row.pop("predicted_us")), 0)
        self.assertEqual(predicted, list(csv.DictReader(io.StringIO(given))))

    def test_predict_reports_errors_per_gpu_and_op(self):
        kernels = self.plant("kernels.csv", kernel_csv(gpus=("A100-PCIe-40GB", "T4")))
        groups = json.loads(self.answer("predict", "--kernels", kernels, "--format", "json"))["groups"]
        self.assertEqual(set(groups[0]), {"gpu", "op", "n", "mean_abs_error_pct", "median_abs_error_pct", "coverage_80_pct"})
        self.assertEqual({(group["gpu"], group["op"]) for group in groups},
                         {(gpu, op) for gpu in ("A100-PCIe-40GB", "T4") for op in ("linear", "bmm", "add", "softmax")})

    def test_train_writes_weights_that_predict_reads(self):
        self.plant("data/fp32.csv", kernel_csv())
        kernels = self.folder / "data/fp32.csv"
        result = self.run_tessera("train", "--data", self.folder / "data", "--out", "weights.pb")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("held-out GPU", result.stdout)
        self.assertIn("wrote weights.pb", result.stderr)
        trained = self.answer("predict", "--kernels", kernels, "--weights", "weights.pb", "--format", "csv")
        self.assertNotEqual(trained, self.answer("predict", "--kernels", kernels, "--format", "csv"))

    def test_train_replaces_a_section_of_another_version(self):
        self.plant("data/fp32.csv", kernel_csv())
        train = ("train", "--data", self.folder / "data", "--out", "weights.pb")
        self.assertEqual(self.run_tessera(*train).returncode, 0)
        file = self.folder / "weights.pb"
        trained = file.read_bytes()
        versions = b"\x08\x01\x10\x01\x1a\x04fp32"  # schema 1, feature 1
        self.assertEqual(trained.count(versions), 1)
        file.write_bytes(trained.replace(versions, b"\x08\x01\x10\x02\x1a\x04fp32"))
        self.assert_fails(3, "has feature version 2, not 1", "predict", "--kernels", self.folder / "data/fp32.csv", "--weights", "weights.pb")
        self.assertEqual(self.run_tessera(*train).returncode, 0)
        self.assertEqual(file.read_bytes(), trained)

    def test_validate_simulates_a_file_and_lists_what_it_skips(self):
        models = self.plant("models.csv", TINY_MODELS)
        validation = json.loads(self.answer("validate", "--models", models, "--format", "json"))
        measured, unmeasured, impossible = validation["rows"]
        self.assertAlmostEqual(measured["error_pct"], (measured["simulated_ms"] / 10 - 1) * 100, places=6)
        self.assertGreater(unmeasured["simulated_ms"], 0)
        self.assertIsNone(unmeasured["error_pct"])
        self.assertTrue(impossible["skipped"])
        self.assertEqual(validation["summary"]["n"], 1)

    def test_validate_compares_operators_that_were_timed_alone(self):
        operators = self.plant(
            "operators.csv", "gpu,model,mode,seq_len,batch,node,op,input_shapes,output_shape,forward_us,backward_us\n"
                             'T4,bert_large,training,128,1,a,gelu,"[[1,128,4096]]","(1,128,4096)",90,100\n'
                             'T4,bert_large,training,128,1,b,roll,"[[1,128,4096]]","(1,128,4096)",90,0\n')
        validation = json.loads(self.answer("validate", "--operators", operators, "--format", "json"))
        total = validation["runs"][0]["total"]
        self.assertEqual((total["matched"], total["only_timed"]), (2, 1))
        self.assertAlmostEqual(total["measured_us"], 190)
        self.assertEqual(validation["gpus"][0]["gpu"], "T4")
        self.assertIn("forward    activation", self.answer("validate", "--operators", operators))

    def test_reproduce_puts_published_and_simulated_times_side_by_side(self):
        self.assertRegex(self.answer("reproduce", "neusight"), r"(?m)^H100-SXM5-80GB +dp4 +gpt2_large +training ")

    def test_check_answers_for_every_file(self):
        files = sorted(SCENARIOS.glob("*.yaml"))
        lines = self.answer("check", *files).splitlines()
        self.assertEqual(len(lines), len(files))
        for file, line in zip(files, lines):
            self.assertRegex(line, re.escape(f"{file}: ok, ") + r"[\d.]+ [mb]illion parameters(, [\d.]+ [mb]illion active)?$")

    def test_explain_gives_meaning_unit_and_values(self):
        self.assertIn("tensor", self.answer("explain", "parallelism"))
        self.assertIn("gpipe", self.answer("explain", "training.schedule"))

    def test_explain_knows_the_words_of_reports_and_of_launch_scripts(self):
        self.assertIn("over the step time", self.answer("explain", "tokens per second"))
        self.assertIn("caching allocator", self.answer("explain", "Reserved_Memory"))
        self.assertIn("parallelism.tensor\n", self.answer("explain", "tp"))
        self.assertIn("training.data_parallel.sharding\n", self.answer("explain", "zero_stage"))

    def test_schema_is_a_json_schema_of_scenarios(self):
        schema = json.loads(self.answer("schema"))
        self.assertEqual(schema["$ref"], "#/$defs/Scenario")
        self.assertIn("parallelism", schema["$defs"]["Scenario"]["properties"])

    def test_show_prints_every_pass(self):
        excerpts = {"scenario": "global_batch: 4", "graph": "attention.qkv", "program": "all_reduce",
                    "timed": "layer.backward: "}
        for name, excerpt in excerpts.items():
            self.assertIn(excerpt, self.answer("show", name, DATA_PARALLEL))

    def test_list_names_what_the_configs_folder_holds(self):
        folders = {"gpus": "hw/gpus", "nodes": "hw/nodes", "clusters": "hw/clusters", "models": "models",
                   "scenarios": "scenarios"}
        for kind, folder in folders.items():
            shipped = sorted(path.stem for path in (ROOT / "configs" / folder).glob("*.yaml"))
            self.assertEqual(sorted(self.answer("list", kind).split()), shipped)
        self.assertIn("one_f_one_b", self.answer("list", "schedules"))


if __name__ == "__main__":
    unittest.main()
