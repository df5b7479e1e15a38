"""`tessera plan parallelism`: the layouts that it finds are those that `simulate` confirms."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from tessera_command import PROGRAM, EndToEnd

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
STEP = ("--global-batch", 8, "--sequence-length", 256)
# A search of minutes, whose first layouts are there after a second.
LONG = ("plan", "parallelism", "llama-3-70b", "dgx-h100-x8-rail", "--global-batch", 128, "--sequence-length", 8192, "--jobs", 1)
NARROW = ("--micro-batch", "1,2", "--context", 1, "--sharding", "none,optimizer", "--recompute", "none,full")


class Search(EndToEnd):
    def plan(self, *arguments):
        return json.loads(self.answer("plan", "parallelism", *arguments, *STEP, *NARROW, "--format", "json"))

    def test_gpus_without_bf16_are_searched_in_fp16(self):
        text = self.answer("plan", "parallelism", "gpt2", "dgx-1-v100", "--gpus", "4", "--global-batch", "8",
                           "--sequence-length", "1024")
        self.assertIn("\nframework megatron, fp16, sequences of 1024 tokens, 8 in a step\n", text)

    def test_torchtitan_has_no_zero_1_to_search(self):
        words = ("plan", "parallelism", "llama-3-8b", "hgx-h100-4", "--framework", "torchtitan", *STEP)
        self.assert_fails(3, "--sharding optimizer: is ZeRO-1: torchtitan divides by FSDP", *words, "--sharding", "none,optimizer")

    def test_the_first_layout_simulates_as_it_says(self):
        case = self.plan("gpt2", "hgx-h100-4")["cases"][0]
        self.assertTrue(case["proven"])
        self.assertEqual(case["gpus"], 4)
        self.assertEqual(len(case["layouts"]), 5)
        times = [layout["step_time_s"] for layout in case["layouts"]]
        self.assertEqual(times, sorted(times))
        counts = case["counts"]
        self.assertLess(counts["simulated"], counts["tried"])
        scenario = self.plant("s.yaml", "model: gpt2\ncluster: hgx-h100-4\ntraining: {framework: megatron, precision: bf16, "
                              "sequence_length: 256, global_batch: 8}\n")
        for layout in case["layouts"][:2]:
            answer = self.simulate(scenario, *layout["set"].split())
            self.assertEqual(answer["step_time_s"], layout["step_time_s"])
            self.assertEqual(answer["memory"]["peak_bytes"], layout["peak_memory_bytes"])

    def test_layouts_with_a_plan_simulate_as_they_say_also_with_context_and_expert_groups(self):
        cases = (("qwen1.5-moe-a2.7b", ("model.layers=4", "cluster.node.gpu.memory=40GiB"), 4096, ("--expert", 4, "--context", 1)),
                 ("llama-3-8b", ("model.layers=4",), 16384, ("--expert", 1, "--context", 2)))
        for model, fields, tokens, groups in cases:
            settings = [word for field in fields for word in ("--set", field)]
            answer = self.answer("plan", "parallelism", model, "hgx-h100-4", "--global-batch", 16, "--sequence-length", tokens, "--micro-batch", 4,
                                 "--tensor", 1, "--pipeline", 1, "--sharding", "none", "--recompute", "plan", *groups, *settings, "--format", "json")
            case = json.loads(answer)["cases"][0]
            self.assertTrue(case["proven"], model)
            layout = case["layouts"][0]
            self.assertTrue(layout["memory_plan"], model)
            scenario = self.plant("s.yaml", f"model: {model}\ncluster: hgx-h100-4\ntraining: {{framework: megatron, precision: bf16, "
                                  f"sequence_length: {tokens}, global_batch: 16}}\n")
            again = self.simulate(scenario, *fields, *layout["set"].split())
            self.assertEqual(again["step_time_s"], layout["step_time_s"])
            self.assertTrue(again["memory"]["fits"])

    def test_the_table_says_how_it_got_there(self):
        text = self.answer("plan", "parallelism", "gpt2", "hgx-h100-4", *STEP, *NARROW, "--top", 2)
        self.assertRegex(" ".join(text.split()), r"\d+ layouts: \d+ against a rule, \d+ too large, \d+ slower by bound, \d+ simulated ")
        self.assertIn("the first 2 are the fastest of all layouts that fit", text)
        self.assertRegex(text, r"where the time goes\n 1  (\w+ [\d.]+ %, )+")
        self.assertIn("\nfirst  parallelism.tensor=", text)

    def test_a_model_that_is_not_the_one_named_is_approximate(self):
        model = self.plant("config.json", json.dumps({
            "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "vision_config": {"hidden_size": 64},
            "text_config": {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
                            "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1024,
                            "max_position_embeddings": 4096}}))
        plan = self.plan(model, "hgx-h100-4", "--gpus", 1)
        about = plan["cases"][0]["approximations"]
        text = " ".join(self.answer("plan", "parallelism", model, "hgx-h100-4", *STEP, *NARROW, "--gpus", 1).split())
        self.assertEqual([f"approximate: {line}" in text for line in about], [True] * len(about))
        self.assertTrue(about)

    def test_questions_over_several_cases(self):
        plan = self.plan("gpt2", "hgx-h100-4", "--gpus", "1:4:2x", "--tokens", 1e9)
        self.assertEqual([case["gpus"] for case in plan["cases"]], [1, 2, 4])
        self.assertEqual(plan["cases"][0]["efficiency"], 1)
        self.assertEqual(plan["answer"], 2)
        # One GPU loses nothing to others: cheapest, if there is time.
        needed = plan["seconds"]
        slow = self.plan("gpt2", "hgx-h100-4", "--gpus", "1:4:2x", "--tokens", 1e9, "--deadline", f"{100 * needed} s")
        fast = self.plan("gpt2", "hgx-h100-4", "--gpus", "1:4:2x", "--tokens", 1e9, "--deadline", f"{1.01 * needed} s")
        none = self.plan("gpt2", "hgx-h100-4", "--gpus", "1:4:2x", "--tokens", 1e9, "--deadline", f"{0.5 * needed} s")
        self.assertEqual((slow["answer"], fast["answer"], none["answer"]), (0, 2, None))
        text = self.answer("plan", "parallelism", "gpt2,gpt3-xl", "hgx-h100-4", *STEP, *NARROW, "--gpus", 1)
        self.assertIn("largest that fits: gpt3-xl", text)

    def test_sequences_are_as_long_as_the_models_positions(self):
        plan = ("plan", "parallelism", "gpt2", "hgx-h100-4", "--global-batch", 4, "--gpus", 1, *NARROW, "--format", "json")
        default = self.run_tessera(*plan)
        self.assertEqual((default.returncode, default.stderr), (0, "info: gpt2: sequences of 1024 tokens (--sequence-length)\n"))
        stated = json.loads(self.answer(*plan, "--sequence-length", 1024))
        self.assertEqual(json.loads(default.stdout)["cases"], stated["cases"])

    def test_a_price_of_the_user_wins(self):
        first, second = (self.plan("gpt2", "hgx-h100-4", "--gpus", 1, "--set", f"cluster.node.gpu.price={price}")
                         for price in (1, 3))
        dollars = [plan["cases"][0]["layouts"][0]["dollars_per_step"] for plan in (first, second)]
        self.assertAlmostEqual(dollars[1] / dollars[0], 3)

    def test_prices_are_checked_before_the_work_begins(self):
        begin = time.monotonic()
        for price, message in (("H100-SXM5-80GB", "--price: is H100-SXM5-80GB"), ("=2", "--price: is =2"),
                               ("H100-SXM5-80GB=-1", "--price: is H100-SXM5-80GB=-1"), ("H100-SXM5-80GB=nan", "--price: is"),
                               ("H100-SXM5-80GB=2x", "--price: is"), ("L4=1", "--price: names L4, and no cluster here has that GPU")):
            self.assert_fails(3, message, *LONG, "--price", price)
        self.assert_fails(3, "--price: names H100-SXM5-80GB twice", *LONG, "--price", "H100-SXM5-80GB=1", "--price", "H100-SXM5-80GB=2")
        self.assert_fails(3, "--gpus: 8 of cluster hgx-h100-4", "plan", "parallelism", "gpt3-2.7b", "dgx-h100,hgx-h100-4", "--gpus", 8,
                          "--global-batch", 64)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_price_belongs_to_a_gpu(self):
        plan = ("plan", "parallelism", "gpt2", "hgx-h100-4,hgx-a100-4", *STEP, *NARROW, "--gpus", 1, "--objective", "tokens-per-dollar",
                "--set", "cluster.node.gpu.price=0")
        answer = json.loads(self.answer(*plan, "--price", "H100-SXM5-80GB=2.5", "--format", "json"))
        self.assertEqual([case["dollars_per_gpu_hour"] for case in answer["cases"]], [2.5, None])
        self.assertEqual(answer["answer"], 0)
        self.assertEqual(answer["unpriced"], [{"cluster": "hgx-a100-4", "gpu": "A100-SXM4-40GB"}])
        self.assertIn("no price is known of A100-SXM4-40GB of hgx-a100-4", self.answer(*plan, "--price", "H100-SXM5-80GB=2.5"))
        self.assert_fails(3, "cluster.node.gpu.price", *plan)

    def assert_unproven(self, text, ended):
        case = json.loads(text)["cases"][0]
        self.assertEqual((case["proven"], case["ended"]), (False, ended))
        self.assertIsNotNone(case["open_lower_bound_s"])
        return case

    def test_ctrl_c_prints_what_was_found(self):
        command = [PROGRAM, *map(str, LONG), "--format", "json"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as search:
            children = Path(f"/proc/{search.pid}/task/{search.pid}/children")
            while not children.read_text():  # the search has not begun
                time.sleep(0.05)
            time.sleep(1)
            search.send_signal(signal.SIGINT)
            out, _ = search.communicate(timeout=60)
        self.assertEqual(search.returncode, 130)
        self.assert_unproven(out, "interrupted")

    def test_a_time_limit_is_kept_and_said(self):
        begin = time.monotonic()
        limited = self.run_tessera(*LONG, "--time-limit", "3s", "--format", "json")
        self.assertLess(time.monotonic() - begin, 15)
        case = self.assert_unproven(limited.stdout, "out_of_time")
        self.assertEqual(limited.returncode, 0 if case["layouts"] else 6)
        self.assertEqual(case["layouts"], sorted(case["layouts"], key=lambda layout: layout["step_time_s"]))
        nothing = self.run_tessera(*LONG, "--time-limit", "1us")
        self.assertEqual(nothing.returncode, 6)
        self.assertIn("unproven, the time was over: not every layout has a lower bound yet", nothing.stdout)

    def test_a_terminal_shows_the_best_so_far(self):
        ours, theirs = pty.openpty()
        with subprocess.Popen([PROGRAM, *map(str, LONG), "--time-limit", "10s"], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=theirs) as search:
            os.close(theirs)
            shown = b""
            try:
                while part := os.read(ours, 65536):
                    shown += part
            except OSError:  # the other end is closed
                pass
            search.communicate()
        os.close(ours)
        self.assertRegex(shown.decode(), r"\d+ simulated, best [\d.]+ s")
        self.assertTrue(shown.endswith(b"\r\x1b[K"))

    def test_what_cannot_be_answered(self):
        plan = ("plan", "parallelism", "gpt2", "hgx-h100-4", *STEP)
        self.assert_fails(3, "--deadline: without --tokens", *plan, "--deadline", "1h")
        self.assert_fails(3, "--gpus: 8 of cluster hgx-h100-4", *plan, "--gpus", 8)
        self.assert_fails(2, "--global-batch: Value 0 not in range 1 to 100000000", *plan[:4], "--global-batch", 0)
        self.assert_fails(3, "--gpus: is 8:4", *plan, "--gpus", "8:4:2x")
        self.assert_fails(3, "parallelism.placement", *plan, "--set", "parallelism.placement=[1]")
        self.assert_fails(3, "cluster.node.gpu.price", *plan, "--gpus", "1,2", *NARROW, "--objective", "tokens-per-dollar",
                          "--set", "cluster.node.gpu.price=0")
        nothing = self.run_tessera(*plan, "--set", "cluster.node.gpu.memory=1MiB")
        self.assertEqual(nothing.returncode, 4)
        self.assertIn("no layout fits", nothing.stdout)

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_browser_draws_the_report(self):
        self.answer("plan", "parallelism", "gpt2", "hgx-h100-4", *STEP, *NARROW, "--report", "plan.html",
                    "--set", "cluster.id='</script><img src=x onerror=1>'")
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=profile",
                   "--dump-dom", f"file://{self.folder}/plan.html#measure"]
        shown = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        self.assertIn("data-ready", shown.stdout)
        self.assertNotIn("<img", shown.stdout)
        self.assertEqual([line for line in shown.stderr.splitlines() if "CONSOLE" in line], [])
        self.assertGreater(int(re.search(r'data-chosen="(\d+)"', shown.stdout).group(1)), 0)
        self.assertGreater(shown.stdout.count("<canvas"), 1)


if __name__ == "__main__":
    unittest.main()
