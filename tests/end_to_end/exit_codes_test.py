"""Exit codes and messages of what goes wrong, as docs/architecture.md lists them."""

import json
import os
import signal
import subprocess
import time
import unittest

from kernel_rows import kernel_csv
from tessera_command import DATA_PARALLEL, PROGRAM, ROOT, EndToEnd, settings

USAGE, BAD_INPUT, DOES_NOT_FIT, OUT_OF_TOLERANCE, OUT_OF_TIME, INTERRUPTED = 2, 3, 4, 5, 6, 130

BAD_SCENARIO = """model: gpt2-largo
cluster: hgx-h100-4
training: {global_batch: 4}
paralelism: {data: 4}
"""


class Home(EndToEnd):
    def test_a_home_without_its_files_is_named_with_the_remedy(self):
        for folder in (self.folder / "nowhere", self.folder):
            environment = {**os.environ, "TESSERA_HOME": str(folder)}
            for arguments in (("list", "gpus"), ("simulate", "gpt2-large_4xh100_dp4"), ("explain", "model")):
                self.assert_fails(BAD_INPUT, f"TESSERA_HOME: {folder} holds no configs/ and predictor/", *arguments, env=environment)
        self.assertEqual(self.run_tessera("--help", env=environment).returncode, 0)


class UsageErrors(EndToEnd):
    def test_no_command(self):
        self.assert_fails(USAGE, "a command is missing")

    def test_an_unknown_command_is_named(self):
        self.assert_fails(USAGE, "simulte", "simulte", DATA_PARALLEL)

    def test_help_is_a_word_too(self):
        self.assertEqual(self.answer("help", "plan", "memory"), self.answer("plan", "memory", "--help"))
        self.assertEqual(self.answer("help"), self.answer("--help"))

    def test_what_was_nearly_right_gets_what_to_write(self):
        for expected, command in (("did you mean simulate?", "simulte x"), ("did you mean gpus?", "list gpu"), ("did you mean --report?", "simulate x --reprt y"),
                                  ("write --set parallelism.tensor=4", "simulate x --set parallelism.tensor 4"), ("see tessera plan memory --help", "plan memory")):
            self.assert_fails(USAGE, expected, *command.split())

    def test_a_model_or_the_last_word_of_a_field_is_known_where_another_name_belongs(self):
        self.assert_fails(BAD_INPUT, "tessera fit llama-3-8b CLUSTER", "simulate", "llama-3-8b")
        self.assert_fails(USAGE, "were not expected: --nods 8; did you mean --nodes?", "fit", "gpt2", "dgx-h100", "--nods", "8")
        self.assert_fails(BAD_INPUT, "did you mean training.micro_batch?", "simulate", DATA_PARALLEL, "--set", "micro_batch=2")
        self.assert_fails(BAD_INPUT, "did you mean llama-2-70b?", "fit", "lama-2-70b", "dgx-h100")

    def test_an_unknown_option_is_named(self):
        self.assert_fails(USAGE, "--fast", "simulate", DATA_PARALLEL, "--fast")

    def test_a_missing_argument_is_named(self):
        self.assert_fails(USAGE, "FILE is required", "simulate")

    def test_an_unknown_value_is_answered_with_the_known_ones(self):
        self.assert_fails(USAGE, "{table, json}", "simulate", DATA_PARALLEL, "--format", "xml")
        self.assert_fails(USAGE, "{scenario, graph, program, timed, memory}", "show", "kernels", DATA_PARALLEL)
        self.assert_fails(USAGE, "--operators", "validate")
        self.assert_fails(USAGE, "--operators", "validate", "--models", "a.csv", "--operators", "b.csv")


class BadInput(EndToEnd):
    def test_a_missing_file_is_named(self):
        self.assert_fails(BAD_INPUT, "nowhere.yaml: no such file", "simulate", "nowhere.yaml")
        self.assert_fails(BAD_INPUT, "nowhere.csv: ", "predict", "--kernels", "nowhere.csv")
        self.assert_fails(BAD_INPUT, "nowhere.csv: ", "validate", "--models", "nowhere.csv")
        self.assert_fails(BAD_INPUT, "nowhere.csv: ", "validate", "--operators", "nowhere.csv")
        self.assert_fails(BAD_INPUT, "nowhere", "train", "--data", "nowhere", "--out", "weights.pb")

    def test_every_problem_of_a_scenario_has_its_line(self):
        self.plant("bad.yaml", BAD_SCENARIO)
        for command in ("simulate", "check"):
            result = self.run_tessera(command, "bad.yaml")
            self.assertEqual((result.returncode, result.stdout), (BAD_INPUT, ""))
            self.assertRegex(result.stderr, r"(?m)^error: bad\.yaml:1:\d+: .*gpt2-largo")
            self.assertRegex(result.stderr, r"(?m)^error: bad\.yaml:4:\d+: .*paralelism.*parallelism")

    def test_check_refuses_what_simulate_refuses(self):
        for setting, named in (("memory.planner=nonsense", "memory.planner"),
                               ("collectives.overrides=[{algorithm: nvls, kinds: [all_reduce]}]", "")):
            codes = [self.run_tessera(command, DATA_PARALLEL, *settings(setting)).returncode for command in ("check", "simulate")]
            self.assertEqual(codes[0] == BAD_INPUT, codes[1] == BAD_INPUT, setting)
            if named:
                self.assert_fails(BAD_INPUT, named, "check", DATA_PARALLEL, *settings(setting))

    def test_the_time_limit_covers_planning(self):
        self.assert_fails(OUT_OF_TIME, "of planning", "simulate", DATA_PARALLEL, *settings("simulation.time_limit=10us"))

    def test_check_tells_of_every_file(self):
        for name in ("one.yaml", "two.yaml"):
            self.plant(name, BAD_SCENARIO)
        result = self.run_tessera("check", "one.yaml", DATA_PARALLEL, "two.yaml")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertEqual(result.stdout, f"{DATA_PARALLEL}: ok, 774.03 million parameters\n")
        self.assertIn("error: one.yaml:4:", result.stderr)
        self.assertIn("error: two.yaml:4:", result.stderr)

    def test_a_bad_override_is_quoted(self):
        self.assert_fails(BAD_INPUT, "--set parallelism.tensor=3: ", "simulate", DATA_PARALLEL,
                          *settings("parallelism.tensor=3"))

    def test_an_unknown_field_is_answered_with_the_known_ones(self):
        self.assert_fails(BAD_INPUT, "parallelism", "explain", "paralelism")

    def test_a_malformed_kernel_has_file_and_line(self):
        rows = kernel_csv().splitlines()
        rows[2] = rows[2].replace("256", "many", 1)
        self.plant("kernels.csv", "\n".join(rows) + "\n")
        self.assert_fails(BAD_INPUT, "kernels.csv:3: ", "predict", "--kernels", "kernels.csv", "--strict")

    def test_a_malformed_kernel_is_skipped_with_its_reason(self):
        rows = kernel_csv().splitlines()
        rows[2] = rows[2].replace("256", "many", 1)
        self.plant("kernels.csv", "\n".join(rows) + "\n")
        scores = json.loads(self.answer("predict", "--kernels", "kernels.csv", "--format", "json"))
        self.assertEqual([row["id"] for row in scores["skipped"]], ["line 3"])
        self.assertIn("'many' is not a size", scores["skipped"][0]["reason"])

    def test_kernels_that_are_not_utf_8_are_bad_input(self):
        (self.folder / "kernels.csv").write_bytes(kernel_csv().encode() + b"T4\xff\n")
        self.assert_fails(BAD_INPUT, "UTF-8", "predict", "--kernels", "kernels.csv")

    def test_kernels_of_servers_are_predicted_and_what_stands_in_is_said(self):
        tables = {
            "mla": "gpu,part,dtype,batch,heads,seq_q,latency_us\nH100-SXM5-80GB,module,fp8_block,1,16,4096,900\n",
            "experts": "gpu,dtype,num_tokens,hidden,ffn,top_k,experts,tp,ep,routing,latency_us\n"
                       "H100-SXM5-80GB,bf16,4096,2048,512,8,256,1,2,power_law_1.2,1000\n",
            "conv1d": "gpu,num_tokens,d_state,d_conv,ssm_heads,head_dim,groups,latency_us\nL40S,16384,64,4,16,64,4,100\n",
            "quantize": "gpu,op,m,k,latency_us\nL40S,scale_matrix,4096,4096,100\n",
            "product": "gpu,dtype,m,n,k,latency_us,stack\nGB200,nvfp4,4096,4096,4096,40,unheard-of\n",
            "attention": "gpu,dtype,direction,causal,batch,heads,kv_heads,head_dim,seq_q,seq_kv,latency_us,stack,source,window\n"
                         "H100-SXM5-80GB,bf16,forward,1,1,8,8,128,8192,8192,100,new/software,here,1024\n",
            "all_reduce": "gpu,op,dtype,n_gpus,bytes,latency_us,stack\nA100-SXM4-80GB,all_reduce,bf16,4,1048576,50,x\n",
            "exchange": "gpu,mode,phase,num_tokens,hidden,top_k,latency_us\nH100-SXM5-80GB,normal,combine,4096,7168,8,500\n",
        }
        for name, text in tables.items():
            with self.subTest(name):
                self.plant("kernels.csv", text)
                [row] = json.loads(self.answer("predict", "--kernels", "kernels.csv", "--format", "json"))["rows"]
                self.assertIsNone(row["skipped"])
                self.assertTrue(row["predicted_as"])
                self.assertGreater(row["predicted_us"], row["latency_us"] / 10)
                self.assertLess(row["predicted_us"], row["latency_us"] * 10)

    def test_a_malformed_run_has_file_and_line(self):
        self.plant("models.csv", "gpu,n_gpus,parallelism,model,mode,seq_len,batch,step_ms\n"
                                 "T4,1,single,gpt2,inference,128,1,10\n"
                                 "T4,none,single,gpt2,inference,128,1,10\n")
        self.assert_fails(BAD_INPUT, "models.csv:3: ", "validate", "--models", "models.csv", "--strict")

    def test_a_malformed_operator_has_file_and_line(self):
        self.plant("operators.csv", "gpu,model,mode,seq_len,batch,node,op,input_shapes,output_shape,forward_us\n"
                                    'T4,bert_large,inference,128,1,a,gelu,"[[128,4096]]","(128,4096)",90\n'
                                    'T4,bert_large,inference,128,1,b,gelu,"[[128,4096]]","(128;4096)",90\n')
        self.assert_fails(BAD_INPUT, "operators.csv:3: ", "validate", "--operators", "operators.csv", "--strict")

    def test_training_refuses_the_gpus_that_judge_it(self):
        self.plant("fp32.csv", kernel_csv(gpus=("A100-PCIe-40GB", "H100-SXM5-80GB")))
        self.assert_fails(BAD_INPUT, "holds rows of H100-SXM5-80GB", "train", "--data", ".", "--out", "weights.pb")
        self.assertEqual(self.files(), ["fp32.csv"])


class Verdicts(EndToEnd):
    def test_a_step_that_does_not_fit_is_answered_all_the_same(self):
        result = self.run_tessera("simulate", DATA_PARALLEL, *settings("training.global_batch=4000"))
        self.assertEqual((result.returncode, result.stderr), (DOES_NOT_FIT, ""))
        self.assertIn("DOES NOT FIT", result.stdout)

    def test_a_missed_tolerance_is_answered_all_the_same(self):
        models = ROOT / "results/validation/neusight_published.csv"
        result = self.run_tessera("validate", "--models", models, "--tolerance", "0.001")
        self.assertEqual((result.returncode, result.stderr), (OUT_OF_TOLERANCE, ""))
        self.assertEqual(result.stdout, self.answer("validate", "--models", models, "--tolerance", "100"))

    def test_where_no_row_can_be_compared_no_tolerance_is_met(self):
        self.plant("models.csv", "gpu,n_gpus,parallelism,model,mode,seq_len,batch,step_ms\n"
                                 "T4,4,tp3,gpt2,training,128,1,10\n")
        arguments = ("validate", "--models", "models.csv", "--tolerance", "100")
        result = self.run_tessera(*arguments)
        self.assertEqual(result.returncode, OUT_OF_TOLERANCE)
        self.assertRegex(result.stdout, r"(?m)^all +n +0 +nothing to compare$")
        summary = json.loads(self.run_tessera(*arguments, "--format", "json").stdout)["summary"]
        self.assertEqual((summary.pop("n"), summary.pop("intervals"), set(summary.values())), (0, 0, {None}))

    def test_a_signal_ends_a_run_at_once(self):
        self.plant("s.yaml", "base: {model: gpt2, cluster: dgx-h100, training: {sequence_length: 64}}\n"
                   "axes: {training.global_batch: {from: 8, to: 80000, step: 8}}\n")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            folder = self.folder / f"out{number}"
            # Run under nohup, a test ignores SIGHUP, and so would the program.
            heeded = ["env", "--default-signal=HUP,INT,TERM"]
            with subprocess.Popen([*heeded, PROGRAM, "sweep", "s.yaml", "--out", folder], cwd=self.folder,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                while not folder.exists() and process.poll() is None:
                    time.sleep(0.01)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=60), 128 + number)
                self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(128 + signal.SIGINT, INTERRUPTED)


if __name__ == "__main__":
    unittest.main()
