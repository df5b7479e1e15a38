"""tessera plan memory and batch: what is planned is what is simulated, and fits."""

import json
import unittest

from tessera_command import DATA_PARALLEL, EndToEnd

BAD_INPUT, DOES_NOT_FIT = 3, 4
GIB = 1 << 30

SCENARIO = """
model: {extends: gpt2-large, layers: 8}
cluster: dgx-a100
training: {framework: megatron-local, precision: fp16, sequence_length: 1024, micro_batch: 4, global_batch: 16}
parallelism: {tensor: %d, pipeline: %d}
"""


class PlanMemory(EndToEnd):
    def setUp(self):
        super().setUp()
        self.plant("one.yaml", SCENARIO % (1, 1))
        self.plant("four.yaml", SCENARIO % (2, 2))

    def plan(self, file, *options):
        result = self.run_tessera("plan", "memory", file, "--fast", "--format", "json", *options)
        return result.returncode, json.loads(result.stdout)

    def assert_planned(self, plan, budget):
        self.assertTrue(plan["feasible"])
        for stage in plan["stages"]:
            self.assertLessEqual(stage["planned_peak_bytes"], budget * GIB)
        copies = any(stage["copied_out"] for stage in plan["stages"])
        self.assertAlmostEqual(plan["simulated_step_s"] / plan["planned_step_s"], 1, delta=0.01 if copies else 0.005)
        self.assertGreater(plan["simulated_step_s"], plan["base_step_s"])

    def test_planned_and_simulated_step_times_agree(self):
        for file, budget in (("one.yaml", 8), ("four.yaml", 2)):
            code, plan = self.plan(file, "--budget", f"{budget}GiB")
            self.assertEqual(code, 0, file)
            self.assertTrue(any(stage["needed"] for stage in plan["stages"]))
            self.assert_planned(plan, budget)

    def test_what_a_stage_holds_beside_its_tensors_is_left_room_for(self):
        """The sixth try lacks 82 MiB on the first of its stages."""
        code, plan = self.plan("deepseek-v3_1024xh100_pp16_ep64_bf16", "--budget", "70%")
        self.assertEqual(code, 0)
        self.assertTrue(plan["feasible"])

    def test_schedules_of_several_passes_and_chunks(self):
        for options in (("training.schedule=interleaved", "parallelism.virtual_stages=2"), ("training.schedule=zero_bubble",),
                        ("training.schedule=dualpipe",)):
            settings = [word for option in (*options, "training.global_batch=32") for word in ("--set", option)]
            _, free = self.plan("four.yaml", *settings, "--budget", "80GiB")
            stage = max(free["stages"], key=lambda stage: stage["base_peak_bytes"])
            budget = stage["static_bytes"] + (stage["base_peak_bytes"] - stage["static_bytes"]) * 7 // 10
            code, plan = self.plan("four.yaml", *settings, "--budget", f"{budget} B")
            self.assertEqual(code, 0, options)
            self.assert_planned(plan, budget / GIB)

    def plan_within(self, file, tenths):
        """So many tenths of what the first stage holds beside its static memory, in bytes with that, and the plan for it."""
        _, free = self.plan(file, "--budget", "79GiB")
        stage = free["stages"][0]
        budget = stage["static_bytes"] + (stage["base_peak_bytes"] - stage["static_bytes"]) * tenths // 10
        code, plan = self.plan(file, "--budget", f"{budget} B")
        self.assertEqual(code, 0, file)
        return budget, plan

    def test_experts_and_context_groups(self):
        self.plant("moe.yaml", "model: {extends: qwen1.5-moe-a2.7b, layers: 4}\ncluster: dgx-h100\ntraining: {framework: megatron, "
                   "precision: bf16, sequence_length: 2048, micro_batch: 1, global_batch: 16}\nparallelism: {data: 8, expert: 4}\n")
        self.plant("context.yaml", "model: {extends: llama-3-8b, layers: 4}\ncluster: dgx-h100\ntraining: {framework: megatron, "
                   "precision: bf16, sequence_length: 8192, micro_batch: 1, global_batch: 4}\nparallelism: {data: 2, context: 4}\n")
        for file in ("moe.yaml", "context.yaml"):
            budget, plan = self.plan_within(file, tenths=8)
            self.assertTrue(plan["feasible"])
            self.assertLessEqual(plan["stages"][0]["planned_peak_bytes"], budget)
            self.assertAlmostEqual(plan["simulated_step_s"] / plan["planned_step_s"], 1, delta=0.05)

    def test_copies_beside_groups_that_reach_other_nodes(self):
        """A GPU's copies share its PCIe port with what its NIC sends: both last longer, which a plan has to know."""
        self.plant("moe.yaml", "model: {extends: qwen1.5-moe-a2.7b, layers: 4}\ncluster: dgx-h100-x2\ntraining: {framework: megatron, "
                   "precision: bf16, sequence_length: 2048, micro_batch: 4, global_batch: 64}\n"
                   "parallelism: {tensor: 4, data: 4, expert: 4}\n")
        self.plant("context.yaml", "model: {extends: llama-3-8b, layers: 4}\ncluster: dgx-h100-x2\ntraining: {framework: megatron, "
                   "precision: bf16, sequence_length: 65536, micro_batch: 1, global_batch: 4}\nparallelism: {context: 16}\n")
        for file in ("moe.yaml", "context.yaml"):
            _, plan = self.plan_within(file, tenths=7)
            self.assertAlmostEqual(plan["simulated_step_s"] / plan["planned_step_s"], 1, delta=0.03, msg=file)

    def test_copies_beside_gathers_of_parameters_that_reach_other_nodes(self):
        """Gathers and reductions of sharded parameters go over the GPU's PCIe port too."""
        self.plant("sharded.yaml", "model: {extends: gpt3-2.7b, layers: 8}\ncluster: dgx-h100-x2\ntraining: {framework: megatron, "
                   "precision: bf16, sequence_length: 2048, micro_batch: 4, global_batch: 64, data_parallel: {sharding: parameters}}\n"
                   "parallelism: {data: 16}\n")
        for tenths in (9, 6):
            _, plan = self.plan_within("sharded.yaml", tenths)
            self.assertAlmostEqual(plan["simulated_step_s"] / plan["planned_step_s"], 1, delta=0.03, msg=str(tenths))

    def test_buffers_of_gradients_live_until_their_reduction_ends(self):
        """Links slower than the passes: reductions trail, and what they hold is no reason to copy activations. 1.16 times the promise before."""
        self.plant("sharded.yaml", "model: {extends: gpt3-2.7b, layers: 8}\ncluster: dgx-h100-x2\ntraining: {framework: megatron, "
                   "precision: bf16, sequence_length: 2048, micro_batch: 1, global_batch: 64, data_parallel: {sharding: parameters}}\n"
                   "parallelism: {data: 16}\n")
        budget, plan = self.plan_within("sharded.yaml", tenths=8)
        self.assertAlmostEqual(plan["simulated_step_s"] / plan["planned_step_s"], 1, delta=0.03)
        result = self.run_tessera("simulate", "sharded.yaml", "--format", "json", "--set", "memory.planner=tessera", "--set",
                                  "memory.thorough=false", "--set", f"memory.budget={budget} B")
        self.assertEqual(json.loads(result.stdout)["memory"]["pressure_copies"], 0)

    def test_more_memory_gives_no_slower_step_of_sharded_parameters(self):
        self.plant("sharded.yaml", "model: {extends: gpt3-175b, layers: 12}\ncluster: {extends: dgx-superpod-h100, fabric: {spines: 1}}\n"
                   "training: {framework: megatron, precision: bf16, sequence_length: 2048, micro_batch: 3, global_batch: 1536, "
                   "data_parallel: {sharding: parameters}}\nparallelism: {tensor: 2, data: 512}\n")
        times = []
        for budget in (16, 18, 20, 22, 24):
            code, plan = self.plan("sharded.yaml", "--budget", f"{budget}GiB", "--no-swap")
            self.assertEqual(code, 0, budget)
            self.assertLess(plan["simulated_step_s"], 1.01 * plan["planned_step_s"], budget)
            times.append((plan["planned_step_s"], plan["simulated_step_s"]))
        for tighter, wider in zip(times, times[1:]):
            self.assertGreaterEqual(tighter, wider)
            self.assertGreaterEqual(tighter[1], wider[1])

    def test_gathered_parameters_leave_room_for_a_plan(self):
        """Layers that run again far ahead of their backward pass hold gathered parameters meanwhile. Recomputing all takes 16.2 GiB."""
        self.plant("one_stage.yaml", "model: {extends: gpt3-175b, layers: 24}\ncluster: {extends: dgx-superpod-h100, fabric: {spines: 1}}\n"
                   "training: {framework: megatron, precision: bf16, sequence_length: 2048, micro_batch: 3, global_batch: 1536, "
                   "data_parallel: {sharding: parameters}}\nparallelism: {tensor: 2, data: 512}\n")
        for budget in ("24GiB", "22GiB"):
            code, plan = self.plan("one_stage.yaml", "--budget", budget, "--no-swap", "--fast")
            self.assertEqual(code, 0, budget)
            self.assertAlmostEqual(plan["simulated_step_s"] / plan["planned_step_s"], 1, delta=0.03, msg=budget)

    def test_the_last_part_of_a_pipeline_does_not_wait(self):
        """Its backward passes follow on the forward ones: what the loss saves need not leave for micro-batches in between."""
        code, plan = self.plan("gpt3-2.7b_8xh100_pp4_interleaved_bf16", "--budget", "18105MiB")
        last = plan["stages"][3]
        self.assertEqual(code, 0)
        self.assertTrue(last["needed"])
        self.assertLess(last["planned_micro_batch_s"] / last["micro_batch_s"], 1.02)

    def test_planners_of_other_names_than_tessera_plan_large_steps_themselves(self):
        """GPT-2 large in fp32 has more than 4,000 operators a stage, above which the fast search of tessera is a draft."""
        sizes = ("--set", "training.micro_batch=16", "--set", "training.global_batch=64")
        code, plan = self.plan(DATA_PARALLEL, "--planner", "none", *sizes)
        self.assertEqual((code, plan["feasible"], plan["stages"][0]["needed"]), (DOES_NOT_FIT, False, True))

    def test_budgets_are_bytes_or_shares_of_the_activations(self):
        _, free = self.plan("four.yaml", "--budget", "79GiB")
        fullest = max(free["stages"], key=lambda stage: stage["base_peak_bytes"])
        states, above = fullest["static_bytes"], fullest["base_peak_bytes"] - fullest["static_bytes"]
        code, plan = self.plan("four.yaml", "--budget", "60%", "--set", "training.recompute=full")
        self.assertEqual((code, plan["budget_bytes"]), (0, states + above * 6 // 10))
        result = self.run_tessera("plan", "memory", "four.yaml", "--fast", "--budgets", "50%:90%:20%", "--format", "json")
        budgets = [point["budget_bytes"] for point in json.loads(result.stdout)["budgets"]]
        for tenths, budget in zip((5, 7, 9), budgets, strict=True):
            self.assertAlmostEqual(budget, states + above * tenths / 10, delta=1)

    def test_too_little_host_memory_is_named(self):
        code, plan = self.plan("one.yaml", "--budget", "8GiB", "--planner", "belady", "--set", "memory.host_memory=1MiB")
        stage = plan["stages"][0]
        self.assertEqual(code, DOES_NOT_FIT)
        self.assertRegex(stage["infeasible"], "^stage 0: copies of a micro-batch need .* more than its share of host memory$")
        self.assertGreater(stage["missing_bytes"], 0)

    def test_sharded_parameters(self):
        self.plant("fsdp.yaml", "model: {extends: gpt2-large, layers: 8, vocab: 8192}\ncluster: dgx-a100\ntraining: {framework: fsdp, "
                   "precision: bf16, sequence_length: 1024, micro_batch: 8, global_batch: 64}\nparallelism: {data: 8}\n")
        _, free = self.plan("fsdp.yaml", "--budget", "80GiB")
        budget = free["stages"][0]["base_peak_bytes"] * 8 // 10
        code, plan = self.plan("fsdp.yaml", "--no-swap", "--budget", f"{budget} B")
        self.assertEqual(code, 0)
        self.assert_planned(plan, budget / GIB)

    def test_optimizer_offload(self):
        code, plan = self.plan("one.yaml", "--budget", "9.5GiB", "--planner", "optimizer_offload")
        self.assertEqual(code, 0)
        self.assert_planned(plan, 9.5)

    def test_swapping_alone_too(self):
        code, plan = self.plan("one.yaml", "--budget", "8GiB", "--planner", "belady")
        self.assertEqual(code, 0)
        self.assertGreater(plan["stages"][0]["copied_bytes"], 0)
        self.assert_planned(plan, 8)
        # The node has eight GPUs, but one copies: it has the whole link (PCIe 4.0 x16).
        self.assertGreater(plan["link_bytes_per_s"], 20e9)

    def test_simulate_carries_the_plan_out(self):
        settings = ("--set", "memory.planner=tessera", "--set", "memory.budget=8GiB", "--set",
                    "memory.thorough=false")
        simulated = json.loads(self.run_tessera("simulate", "one.yaml", "--format", "json", *settings).stdout)
        _, plan = self.plan("one.yaml", "--budget", "8GiB")
        self.assertAlmostEqual(simulated["step_time_s"], plan["simulated_step_s"], places=9)
        self.assertTrue(simulated["memory"]["fits"])
        self.assertEqual(simulated["memory"]["peak_bytes"], plan["stages"][0]["planned_peak_bytes"])

    def test_too_little_names_stage_operator_and_bytes(self):
        code, plan = self.plan("one.yaml", "--budget", "2GiB")
        self.assertEqual((code, plan["feasible"]), (DOES_NOT_FIT, False))
        self.assertIn("stage 0: ", plan["stages"][0]["infeasible"])
        self.assertGreater(plan["stages"][0]["missing_bytes"], 0)

    def test_a_curve_never_gets_faster_with_less_memory(self):
        result = self.run_tessera("plan", "memory", "one.yaml", "--fast", "--no-swap", "--format", "json", "--budgets",
                                  "7GiB:10GiB:1GiB")
        curve = json.loads(result.stdout)["budgets"]
        self.assertEqual([point["budget_bytes"] // GIB for point in curve], [7, 8, 9, 10])
        times = [point["simulated_step_s"] for point in curve]
        for tighter, wider in zip(times, times[1:]):
            self.assertGreaterEqual(tighter, wider)
        for point in curve:
            self.assertLessEqual(point["planned_for_bytes"], point["budget_bytes"])

    def test_export_lists_decisions(self):
        result = self.run_tessera("plan", "export", "one.yaml", "--fast", "--no-swap", "--budget", "8GiB")
        decisions = json.loads(result.stdout)["stages"][0]
        self.assertTrue(decisions["recompute"])
        self.assertEqual(decisions["offload"], [])

    def test_a_page_shows_memory_without_and_with_the_plan_and_what_it_costs(self):
        code, plan = self.plan("four.yaml", "--budget", "2GiB", "--report", "plan.html")
        self.assertEqual(code, 0)
        page = self.page("plan.html")
        summary = {entry["name"]: entry["value"] for entry in page["summary"]}
        self.assertEqual(summary["budget [GiB]"], 2)
        self.assertAlmostEqual(summary["simulated with the plan [ms]"], plan["simulated_step_s"] * 1e3)
        self.assertEqual(page["memory"]["budget_bytes"], 2 * GIB)
        for rank, stage in zip(page["memory"]["ranks"], plan["stages"], strict=True):
            self.assertEqual(max(rank["bytes"]), stage["planned_peak_bytes"])
            self.assertEqual(max(rank["before"]["bytes"]), stage["base_peak_bytes"])
        tables = {table["title"]: table["rows"] for table in page["tables"]}
        self.assertEqual([row[6:8] for row in tables["Stages"]], [[stage["run_again"], stage["copied_out"]] for stage in plan["stages"]])
        runs = [sum(row[2] for row in tables["What runs again"] if row[0] == stage["stage"]) for stage in plan["stages"]]
        self.assertEqual(runs, [stage["run_again"] for stage in plan["stages"]])
        again = [sum(row[3] for row in tables["What runs again"] if row[0] == stage["stage"]) for stage in plan["stages"]]
        for found, stage in zip(again, plan["stages"], strict=True):
            self.assertAlmostEqual(found, stage["recompute_s"] * 1e3, places=6)
        self.assertIn("scenario", [entry["name"] for entry in page["provenance"]])

    def test_pages_of_budgets_batches_exports_and_of_what_does_not_fit(self):
        self.answer("plan", "memory", "four.yaml", "--fast", "--budgets", "1GiB:3GiB:1GiB", "--report", "curve.html")
        curve = self.page("curve.html")["points"]
        self.assertEqual([row[0] for row in curve["rows"]], [1, 2, 3])
        self.assertRegex(curve["rows"][0][-1], "^stage 0: .* more than the budget$")
        self.assertGreater(curve["rows"][1][1], curve["rows"][2][1], "less memory costs more time")
        answer = json.loads(self.answer("plan", "batch", "one.yaml", "--planner", "megatron_uniform", "--format", "json", "--report", "batch.html"))
        self.assertEqual([[row[0], row[1]] for row in self.page("batch.html")["points"]["rows"]],
                         [[planner["planner"], planner["micro_batch"]] for planner in answer["planners"]])
        self.answer("plan", "export", "four.yaml", "--fast", "--budget", "2GiB", "--report", "export.html")
        self.assertIn("What runs again", [table["title"] for table in self.page("export.html")["tables"]])
        result = self.run_tessera("plan", "memory", "four.yaml", "--budget", "1GiB", "--report", "none.html")
        self.assertEqual(result.returncode, DOES_NOT_FIT)
        page = self.page("none.html")
        self.assertNotIn("before", page["memory"]["ranks"][0])
        self.assertIn("more than the budget", page["tables"][0]["rows"][0][-1])

    def test_batch_grows_with_a_plan(self):
        result = self.run_tessera("plan", "batch", "one.yaml", "--set", "memory.budget=8GiB", "--set", "training.global_batch=4",
                                  "--planner", "tessera", "--no-swap", "--slowdown", "1.2", "--format", "json")
        plain, planned, ceiling = json.loads(result.stdout)["planners"]
        self.assertGreater(planned["micro_batch"], plain["micro_batch"])
        self.assertLessEqual(planned["seconds_per_sample"], 1.2 * plain["seconds_per_sample"])
        self.assertLessEqual(planned["micro_batch"], ceiling["micro_batch"])

    def test_a_model_of_one_block_has_a_plan(self):
        self.plant("u-net.yaml", "model: u-net\ncluster: dgx-1-v100\ntraining: {framework: hf_eager, optimizer: sgd, "
                   "clip_gradients: false, micro_batch: 2, global_batch: 2}\n")
        result = self.run_tessera("plan", "memory", "u-net.yaml", "--fast", "--no-swap", "--budget", "3GiB", "--format", "json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(json.loads(result.stdout)["feasible"])

    def test_memory_pressure_keeps_any_schedule_within_a_limit(self):
        for schedule in ("one_f_one_b", "zero_bubble", "dualpipe"):
            options = ("--set", f"training.schedule={schedule}", "--set", "training.global_batch=32", "--format", "json")
            free = json.loads(self.run_tessera("simulate", "four.yaml", *options).stdout)
            static = max(rank["static_bytes"] for rank in free["memory"]["per_rank"])
            limit = static + (free["memory"]["peak_bytes"] - static) * 3 // 4
            result = self.run_tessera("simulate", "four.yaml", *options, "--set", f"memory.limit={limit} B")
            self.assertEqual(result.returncode, 0, result.stderr)
            tight = json.loads(result.stdout)
            self.assertLessEqual(tight["memory"]["peak_bytes"], limit, schedule)
            self.assertGreater(tight["memory"]["pressure_copies"] + tight["memory"]["pressure_reruns"], 0, schedule)
            self.assertGreaterEqual(tight["step_time_s"], free["step_time_s"], schedule)

    def test_a_plan_for_a_looser_budget_meets_a_tighter_limit(self):
        settings = ("--set", "memory.planner=belady", "--set", "memory.budget=9GiB", "--format", "json")
        planned = json.loads(self.run_tessera("simulate", "one.yaml", *settings).stdout)
        self.assertEqual(planned["memory"]["pressure_copies"], 0)
        result = self.run_tessera("simulate", "one.yaml", *settings, "--set", "memory.limit=8GiB")
        tight = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0)
        self.assertLessEqual(tight["memory"]["peak_bytes"], 8 * GIB)
        self.assertGreater(tight["memory"]["pressure_copies"], 0)

    def test_what_cannot_fit_at_run_time_ends_the_run(self):
        self.assert_fails(DOES_NOT_FIT, "out of memory", "simulate", "one.yaml", "--set", "memory.limit=1GiB")
        self.assert_fails(DOES_NOT_FIT, "memory.swap is false", "simulate", "one.yaml", "--set", "memory.limit=8GiB", "--set",
                          "memory.swap=false", "--set", "memory.recompute=false")

    def test_results_are_made_again_where_nothing_may_be_copied(self):
        options = ("--set", "memory.limit=9GiB", "--set", "memory.swap=false", "--format", "json")
        free = json.loads(self.run_tessera("simulate", "one.yaml", "--format", "json").stdout)
        result = self.run_tessera("simulate", "one.yaml", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        tight = json.loads(result.stdout)
        self.assertGreater(free["memory"]["peak_bytes"], 9 * GIB)
        self.assertLessEqual(tight["memory"]["peak_bytes"], 9 * GIB)
        self.assertEqual(tight["memory"]["pressure_copies"], 0)
        self.assertGreater(tight["memory"]["pressure_reruns"], 0)
        added = tight["step_time_s"] - free["step_time_s"]
        self.assertAlmostEqual(added, tight["memory"]["pressure_rerun_s"], delta=0.02 * added)
        story, plain = (json.loads(self.run_tessera("explain-step", "one.yaml", *given).stdout) for given in (options, ("--format", "json")))
        path = {part["class"]: part["seconds"] for part in story["critical_path"]["classes"]}
        for classes, before in ((story["ranks"][0]["classes"], plain["ranks"][0]["classes"]),
                                (story["critical_path"]["classes"], plain["critical_path"]["classes"])):
            again, first = (sum(part["seconds"] for part in parts if part["class"] == "compute") for parts in (classes, before))
            self.assertAlmostEqual(again - first, tight["memory"]["pressure_rerun_s"], delta=0.02 * added)
        self.assertAlmostEqual(path.get("memory_stall", 0), 0, delta=0.02 * added)
        self.assertNotIn("unexplained", path)

    def test_a_result_says_that_the_plan_took_the_place_of_recompute(self):
        result = json.loads(self.answer("simulate", "one.yaml", "--format", "json", "--set", "memory.planner=tessera",
                                        "--set", "training.recompute=full"))
        self.assertEqual(result["provenance"]["recompute"], "none")
        self.assertIn("training.recompute = full does not hold", " ".join(result["notes"]))

    def test_what_is_refused(self):
        self.assert_fails(BAD_INPUT, "--budgets", "plan", "memory", "one.yaml", "--budgets", "1GiB:2GiB")
        self.assert_fails(BAD_INPUT, "--budgets", "plan", "memory", "one.yaml", "--budgets", "50%:2GiB:10%")
        self.assert_fails(BAD_INPUT, "--budget", "plan", "memory", "one.yaml", "--budget", "0%")
        self.assert_fails(BAD_INPUT, "memory.planner", "simulate", "one.yaml", "--set", "memory.planner=nobody")


if __name__ == "__main__":
    unittest.main()
