"""tessera plan export --to FRAMEWORK: what a framework is told comes back as the same step."""

import json
import unittest

from tessera_command import DATA_PARALLEL, EndToEnd


class PlanExport(EndToEnd):
    def test_exported_options_come_back_as_the_same_step(self):
        script = ("torchrun --nproc_per_node 4 --nnodes 1 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
                  "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 --micro-batch-size 16 --global-batch-size 64 --bf16 ")
        self.plant("plain.sh", script)
        self.assertEqual(self.run_tessera("import", "megatron", "plain.sh", "--output", "plain.yaml").returncode, 0)
        free = json.loads(self.run_tessera("simulate", "plain.yaml", "--format", "json").stdout)["memory"]["per_rank"][0]
        budget = free["static_bytes"] + (free["peak_bytes"] - free["static_bytes"]) * 7 // 10
        exported = self.run_tessera("plan", "export", "plain.yaml", "--fast", "--no-swap", "--to", "megatron", "--budget", f"{budget >> 20}MiB")
        plan = json.loads(exported.stdout)
        self.assertEqual(exported.returncode, 0)
        self.assertNotIn("approximate", plan)
        self.assertTrue(plan["fits"])
        self.assertGreaterEqual(plan["lost"], -0.01)
        for way in plan["tried"]:
            self.plant("again.sh", script + " ".join(way["options"]))
            self.assertEqual(self.run_tessera("import", "megatron", "again.sh", "--output", "again.yaml").returncode, 0, way)
            again = json.loads(self.run_tessera("simulate", "again.yaml", "--format", "json").stdout)
            self.assertAlmostEqual(again["step_time_s"] / way["step_time_s"], 1, delta=1e-9, msg=str(way["options"]))

    def test_ways_that_a_model_does_not_have_are_told_beside_those_that_it_has(self):
        for scenario, refused in (("stable-diffusion-1_8xh100_dp8", "full"), ("resnet-50_8xv100_dp8", "selective")):
            result = self.run_tessera("plan", "export", scenario, "--fast", "--no-swap", "--to", "torchtitan", "--budget", "110%")
            self.assertEqual(result.returncode, 0, result.stderr)
            answer = json.loads(result.stdout)
            self.assertEqual([way["settings"]["training.recompute"] for way in answer["refused"]], [refused])

    def test_options_of_another_framework_than_the_steps_are_approximate(self):
        for framework, other in (("torchtitan", True), ("megatron", False)):
            result = self.run_tessera("plan", "export", DATA_PARALLEL, "--fast", "--no-swap", "--to", framework, "--budget", "60GiB")
            self.assertEqual("approximate" in json.loads(result.stdout), other, result.stdout)

    def imported_step(self, kind, config, *settings):
        """Of eight ranks that train GPT-2 large as `config` says: the scenario's file, and its step."""
        self.plant("config.txt", config)
        options = ("--model", "gpt2-large", "--cluster", "dgx-a100", "--gpus", "8", "--sequence-length", "1024")
        if kind == "accelerate":
            options += ("--global-batch", "32", "--micro-batch", "4")
        self.assertEqual(self.run_tessera("import", kind, "config.txt", "--out", f"{kind}.yaml", *options).returncode, 0)
        return f"{kind}.yaml", json.loads(self.run_tessera("simulate", f"{kind}.yaml", "--format", "json", *settings).stdout)

    def exports(self, kind, framework, plain):
        """What `framework` is told for a budget that all fits into, for less, and for a tight one."""
        file, free = self.imported_step(kind, plain)
        rank = free["memory"]["per_rank"][0]
        for share in (1.1, 0.7, 0.438):
            budget = int(rank["static_bytes"] + share * (rank["peak_bytes"] - rank["static_bytes"]))
            result = self.run_tessera("plan", "export", file, "--fast", "--no-swap", "--to", framework, "--budget", f"{budget >> 20}MiB")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            plan = json.loads(result.stdout)
            self.assertEqual(plan["settings"]["training.recompute"], "none" if share > 1 else "full")
            self.assertLessEqual(plan["free_plan"]["peak_bytes"], budget)
            yield plan

    def test_what_fsdp_is_told_comes_back_as_the_same_step(self):
        def config(lines):
            return "\n".join(["distributed_type: FSDP", "fsdp_config:", "  fsdp_sharding_strategy: FULL_SHARD", *lines,
                              "mixed_precision: bf16", "num_machines: 1", "num_processes: 8", ""])

        for plan in self.exports("accelerate", "fsdp", config([])):
            _, again = self.imported_step("accelerate", config(plan["options"][1:]))
            self.assertEqual(again["step_time_s"], plan["step_time_s"])

    def test_what_deepspeed_is_told_comes_back_as_the_same_step(self):
        """Its file says how activations are checkpointed; whether they are, the model's code alone."""
        plain = {"train_micro_batch_size_per_gpu": 4, "train_batch_size": 32, "bf16": {"enabled": True},
                 "optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}}
        for plan in self.exports("deepspeed", "deepspeed", json.dumps(plain)):
            config, *code = plan["options"]
            settings = ("--set", "training.recompute=full") if code else ()
            _, again = self.imported_step("deepspeed", json.dumps({**plain, **json.loads(config)}), *settings)
            self.assertEqual(again["step_time_s"], plan["step_time_s"])

    def test_modules_that_a_scenario_recomputes_are_told(self):
        """Selective recomputation of other modules than Megatron's usual ones was told as --recompute-modules core_attn."""
        self.plant("moe.yaml", "model: {extends: qwen1.5-moe-a2.7b, layers: 4}\ncluster: dgx-h100\ntraining: {framework: megatron, precision: bf16, "
                   "sequence_length: 2048, micro_batch: 1, global_batch: 16, recompute: selective, recompute_modules: [moe_act, layernorm]}\n"
                   "parallelism: {data: 8, expert: 4}\n")
        plan = json.loads(self.answer("plan", "export", "moe.yaml", "--fast", "--no-swap", "--to", "megatron", "--budget", "99%"))
        selective = {tuple(way["settings"].get("training.recompute_modules", ["?"])): way for way in plan["tried"]
                     if way["settings"]["training.recompute"] == "selective"}
        self.assertEqual(selective["moe_act", "layernorm"]["options"][1], "--recompute-modules moe_act layernorm")
        self.assertEqual(selective[()]["options"][1], "--recompute-modules core_attn")
        for way in plan["tried"]:
            words = [word for field, value in way["settings"].items() for word in
                     ("--set", f"{field}={'[' + ','.join(value) + ']' if isinstance(value, list) else value}")]
            if "memory.planner" in way["settings"]:
                words += ["--set", "memory.budget=100TB"]
            again = json.loads(self.answer("simulate", "moe.yaml", "--format", "json", *words))
            self.assertAlmostEqual(again["step_time_s"] / way["step_time_s"], 1, delta=1e-9, msg=str(way["options"]))
            self.assertEqual(again["memory"]["peak_bytes"], way["peak_bytes"])


if __name__ == "__main__":
    unittest.main()
