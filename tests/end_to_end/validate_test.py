"""What `validate` and `predict --kernels` make of rows, files and options that do not fit."""

import csv
import io
import json
import unittest

from kernel_rows import kernel_csv
from tessera_command import EndToEnd

GPU = "H100-SXM5-80GB"
RUNS = ("id,gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,ffn,vocab,seq_len,tp,pp,dp,"
        "micro_batch,global_batch,step_time_s{}\n")
RUN = ",8,{framework},bf16,m,gpt,2,1024,8,4096,50304,512,1,1,8,1,8,0.05"
MODELS = "gpu,n_gpus,parallelism,model,mode,seq_len,batch,step_ms\n"


def run(name, framework="megatron", gpu=GPU, more=""):
    return f"{name},{gpu}{RUN.format(framework=framework)}{more}\n"


class Validate(EndToEnd):
    def json_of(self, *arguments):
        return json.loads(self.answer("validate", *arguments, "--format", "json"))

    def test_one_bad_row_costs_itself_alone(self):
        self.plant("runs.csv", RUNS.format("") + run("good") + run("stack", "my-stack") + run("gpu", gpu="Abacus") +
                   run("number").replace(",1024,", ",wide,"))
        answer = self.json_of("runs.csv")
        self.assertEqual([row["id"] for row in answer["skipped"]], ["stack", "gpu", "number"])
        for row, word in zip(answer["skipped"], ("my-stack", "Abacus", "hidden = 'wide'")):
            self.assertIn(word, row["reason"])
        self.assertEqual(answer["summary"]["n"], 1)
        self.assertRegex(self.answer("validate", "runs.csv"), r"(?m)^skipped 1 row: framework = 'my-stack' .*\(stack\)$")
        self.assert_fails(3, "hidden = 'wide'", "validate", "runs.csv", "--strict")
        self.plant("stack.csv", RUNS.format("") + run("good") + run("stack", "my-stack"))
        self.assert_fails(3, "stack.csv:3: framework = 'my-stack'", "validate", "stack.csv", "--strict")

    def test_a_bad_row_of_whole_models_too(self):
        self.plant("models.csv", MODELS + f"{GPU},1,single,gpt2,inference,128,1,5\nAbacus,1,single,gpt2,inference,128,1,5\n"
                   f"{GPU},1,sideways,gpt2,inference,128,1,5\n{GPU},1,single,gpt99,inference,128,1,5\n")
        answer = self.json_of("--models", "models.csv")
        self.assertEqual([row["id"] for row in answer["skipped"]], ["line 3", "line 4", "line 5"])
        row = answer["rows"][0]
        self.assertEqual(row["profile"], "hf-eager")
        self.assertLess(row["low_ms"], row["simulated_ms"])
        self.assertGreater(row["high_ms"], row["simulated_ms"])
        self.assertEqual(answer["summary"]["intervals"], 1)
        self.assert_fails(3, "sideways", "validate", "--models", "models.csv", "--strict")

    def test_a_bad_row_of_collectives_too(self):
        head = "gpu,n_gpus,n_nodes,collective,bytes,time_us\n"
        self.plant("collectives.csv", head + f"{GPU},1,1,all_reduce,1024,10\n{GPU},8,1,all_reduce,1024,10\n")
        answer = self.json_of("--collectives", "collectives.csv")
        self.assertEqual(answer["skipped"], [{"id": "line 2", "where": "collectives.csv:2",
                                              "reason": "n_gpus = '1'; a collective needs at least two GPUs"}])
        self.assertEqual(answer["summary"]["n"], 1)
        self.assertIn("error_pct", answer["rows"][1])
        self.assert_fails(3, "n_gpus = '1'", "validate", "--collectives", "collectives.csv", "--strict")

    def test_a_bad_row_of_operators_too(self):
        head = "gpu,model,mode,seq_len,batch,node,op,input_shapes,output_shape,forward_us\n"
        good = 'T4,bert_large,inference,128,1,a,gelu,"[[1,128,4096]]","(1,128,4096)",90\n'
        self.plant("operators.csv", head + good + good.replace("T4", "Abacus") + good.replace(",1,a", ",2,a").replace("90", "x"))
        answer = self.json_of("--operators", "operators.csv")
        self.assertEqual([row["id"] for row in answer["skipped"]], ["line 3", "line 4"])
        self.assertLess(answer["runs"][0]["low_us"], answer["runs"][0]["high_us"])
        self.assertEqual(answer["runs"][0]["profile"], "hf-eager")

    def test_a_gpu_that_nobody_described_costs_its_kernels_alone(self):
        self.plant("kernels.csv", kernel_csv(gpus=("T4",)) + kernel_csv(gpus=("Abacus",)).split("\n", 1)[1])
        answer = json.loads(self.answer("predict", "--kernels", "kernels.csv", "--format", "json"))
        self.assertEqual({group["gpu"] for group in answer["groups"]}, {"T4"})
        self.assertEqual(len(answer["skipped"]), sum(row["gpu"] == "Abacus" for row in answer["rows"]))
        self.assertIn("Abacus", answer["skipped"][0]["reason"])
        self.assert_fails(3, "Abacus", "predict", "--kernels", "kernels.csv", "--strict")

    def test_text_that_is_not_utf_8_is_refused_with_its_line(self):
        (self.folder / "runs.csv").write_bytes((RUNS.format("") + run("good")).encode() + "Zürich".encode("latin-1"))
        self.assert_fails(3, "runs.csv:3: is not valid UTF-8", "validate", "runs.csv")

    def test_settings_of_a_row_are_applied_last(self):
        self.plant("runs.csv", RUNS.format(",settings") + run("plain", more=",") +
                   run("full", more=",training.recompute=full training.micro_batch=1") +
                   run("wrong", more=",training.recompte=full") + run("less", more=",parallelism.data=4"))
        plain, full, wrong, less = self.json_of("runs.csv")["rows"]
        self.assertEqual((plain["recompute"], full["recompute"]), ("none", "full"))
        self.assertGreater(full["simulated_s"], plain["simulated_s"])
        self.assertIn("recompte", wrong["skipped"])
        self.assertIn("n_gpus = 8", less["skipped"])

    def test_corrections_beside_a_file_are_applied_and_named(self):
        self.plant("runs.csv", RUNS.format("") + run("a") + run("b"))
        self.plant("runs_corrections.csv", "id,column,value,reason\na,step_time_s,,bound by its input\n")
        answer = self.json_of("runs.csv")
        self.assertEqual(answer["summary"]["n"], 1)
        self.assertEqual(answer["corrections"]["fields"][0]["reason"], "bound by its input")
        self.assertTrue(self.answer("validate", "runs.csv").startswith("1 field corrected by runs_corrections.csv\n"))
        self.assertEqual(self.json_of("runs.csv", "--no-corrections")["summary"]["n"], 2)

    def test_the_csv_has_a_verdict_and_bounds(self):
        self.plant("runs.csv", RUNS.format("") + run("a"))
        row = next(csv.DictReader(io.StringIO(self.answer("validate", "runs.csv", "--format", "csv"))))
        self.assertEqual(row["fits"], "1")
        self.assertLess(float(row["low_s"]), float(row["high_s"]))

    def test_options_without_effect_are_refused(self):
        self.plant("models.csv", MODELS + f"{GPU},1,single,gpt2,inference,128,1,5\n")
        self.plant("collectives.csv", f"gpu,n_gpus,n_nodes,collective,bytes,time_us\n{GPU},8,1,all_reduce,1024,10\n")
        for option in (["--only", "gpu=T4"], ["--report", "x.html"], ["--ignore", "x"], ["--constants", "nccl"]):
            self.assert_fails(3, option[0], "validate", "--models", "models.csv", *option)
        for option in (["--overlay", "x.yaml"], ["--jobs", "2"], ["--form", "roofline"], ["--leave-out", "gpu"]):
            self.assert_fails(3, option[0], "validate", "--collectives", "collectives.csv", *option)

    def test_an_overlay_changes_whole_models(self):
        step = "id,gpu,n_gpus,framework,precision,model,family,layers,hidden,heads,ffn,vocab,seq_len,global_batch,step_time_s\n"
        self.plant("steps.csv", step + f"a,{GPU},1,hf-eager,fp32,m,gpt,4,1024,16,4096,50257,512,4,1\n")
        simulated = self.json_of("steps.csv")["rows"][0]["simulated_s"]
        self.plant("slower.csv", step + f"a,{GPU},1,hf-eager,fp32,m,gpt,4,1024,16,4096,50257,512,4,{1.3 * simulated}\n")
        done = self.run_tessera("calibrate", "gpu", "--gpu", GPU, "--from-steps", "slower.csv", "--out", "overlay.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.plant("models.csv", MODELS + f"{GPU},1,single,gpt2,inference,512,4,5\n")
        before, after = (self.json_of("--models", "models.csv", *more)["rows"][0]
                         for more in ([], ["--overlay", "overlay.yaml"]))
        self.assertGreater(after["simulated_ms"], 1.05 * before["simulated_ms"])
        self.assertNotEqual(after["predictor_mode"], before["predictor_mode"])
        self.plant("t4.csv", MODELS + "T4,1,single,gpt2,inference,128,1,5\n")
        self.assert_fails(3, f"is an overlay of {GPU}", "validate", "--models", "t4.csv", "--overlay", "overlay.yaml")


if __name__ == "__main__":
    unittest.main()
