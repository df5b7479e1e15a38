"""What `simulate --format json` promises: its schema, sums that add up, and sense across scenarios."""

import json
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, ROOT, SCENARIOS, EndToEnd, settings

try:
    import jsonschema
except ImportError:  # not a package of tools/packages.txt
    jsonschema = None

SCHEMA = ROOT / "configs/schema/result.schema.json"
OK, DOES_NOT_FIT = 0, 4


class Result(EndToEnd):
    def assert_valid(self, result):
        schema = json.loads(SCHEMA.read_text())
        if jsonschema:
            jsonschema.validate(result, schema)
        self.assertLessEqual(set(schema["required"]), set(result))
        self.assertLessEqual(set(result), set(schema["properties"]))

    def assert_consistent(self, result):
        step_time = result["step_time_s"]
        parts = result["breakdown"].values()
        self.assertAlmostEqual(sum(part["seconds"] for part in parts), step_time, delta=1e-9 * step_time)
        self.assertAlmostEqual(sum(part["share"] for part in parts), 1, places=9)
        exposed = sum(part["seconds"] for name, part in result["breakdown"].items() if name.startswith("exposed_"))
        self.assertAlmostEqual(result["exposed_communication_s"] + result["exposed_copies_s"], exposed, delta=1e-9 * step_time)
        self.assertEqual(result["exposed_copies_s"], result["breakdown"]["exposed_swap"]["seconds"])
        self.assertTrue(result["mfu"] is None or result["mfu"] <= result["hfu"] <= 1)
        gpus = result["provenance"]["gpus"]
        self.assertAlmostEqual(result["tokens_per_s_per_gpu"] * gpus, result["tokens_per_s"],
                               delta=1e-9 * result["tokens_per_s"])
        memory = result["memory"]
        self.assertEqual(sum(rank["stands_for"] for rank in memory["per_rank"]), gpus)
        self.assertEqual(result["folding"]["simulated_ranks"], len(memory["per_rank"]))
        self.assertEqual(memory["peak_bytes"], max(rank["peak_bytes"] for rank in memory["per_rank"]))
        self.assertEqual(memory["device_bytes"], sum(memory[part + "_bytes"] for part in ("reserved", "context", "nccl")))
        self.assertEqual(memory["fits"], memory["device_bytes"] <= memory["capacity_bytes"])
        self.assertLessEqual(result["parameters"]["active"], result["parameters"]["total"])

    def test_every_shipped_scenario_gives_a_valid_and_consistent_result(self):
        for scenario in sorted(SCENARIOS.glob("*.yaml")):
            with self.subTest(scenario.stem):
                run = self.run_tessera("simulate", scenario, "--format", "json")
                result = json.loads(run.stdout)
                self.assertEqual(run.returncode, OK if result["memory"]["fits"] else DOES_NOT_FIT)
                self.assertEqual((run.stderr, result["scenario"]), ("", scenario.stem))
                self.assert_valid(result)
                self.assert_consistent(result)

    def test_context_and_nccl_count_where_tensors_alone_would_fit(self):
        self.plant("qwen.yaml", "model: qwen3-235b-a22b\ncluster: dgx-h100-x8-rail\n"
                   "training: {framework: megatron, precision: bf16, sequence_length: 8192, global_batch: 64, micro_batch: 1,\n"
                   "           recompute: full, data_parallel: {sharding: parameters}}\nparallelism: {data: 64, expert: 8}\n")
        run = self.run_tessera("simulate", "qwen.yaml", "--set", "cluster.node.gpu.memory=80GiB", "--format", "json")
        memory = json.loads(run.stdout)["memory"]
        self.assertLess(memory["allocated_bytes"], memory["capacity_bytes"])
        self.assertGreater(memory["device_bytes"], memory["capacity_bytes"])
        self.assertEqual((run.returncode, memory["fits"]), (DOES_NOT_FIT, False))

    def test_inference_says_that_there_is_no_key_value_cache(self):
        one_token = self.simulate(DATA_PARALLEL, "training.mode=inference", "training.sequence_length=1")
        self.assertRegex(" ".join(one_token["notes"]), "no KV cache.*no decoding step")
        self.assertEqual(self.simulate(DATA_PARALLEL)["notes"], [])

    def test_one_note_does_not_hide_another(self):
        self.plant("uneven.yaml", "model: gpt2-large\ncluster: hgx-h100-4\ntraining: {framework: megatron, precision: bf16, "
                   "sequence_length: 512, micro_batch: 1, global_batch: 16, mode: training, optimizer: muon}\n"
                   "parallelism: {data: 4, micro_batches_per_replica: [5, 3, 4, 4]}\n")
        notes = self.simulate("uneven.yaml")["notes"]
        self.assertEqual([note.split()[0] for note in notes], ["replicas", "muon:"])

    def test_timing_is_part_of_the_schema(self):
        self.assert_valid(json.loads(self.answer("simulate", DATA_PARALLEL, "--format", "json", "--timing")))

    def test_tokens_per_second_are_the_global_batch_over_the_step_time(self):
        result = self.simulate(DATA_PARALLEL, "training.global_batch=8")
        self.assertAlmostEqual(result["tokens_per_s"] * result["step_time_s"], 8 * 1024, places=6)

    def test_overrides_turn_data_parallelism_into_tensor_parallelism(self):
        result = self.simulate(DATA_PARALLEL, "parallelism.tensor=4", "parallelism.data=1")
        self.assertEqual([result["provenance"][axis] for axis in ("tensor", "pipeline", "data")], [4, 1, 1])
        self.assertGreater(result["breakdown"]["exposed_tensor"]["seconds"], 0)
        self.assertEqual(result["breakdown"]["exposed_data"]["seconds"], 0)
        shipped = self.simulate(SCENARIOS / "gpt2-large_4xh100_tp4.yaml")
        self.assertAlmostEqual(result["step_time_s"], shipped["step_time_s"], delta=1e-9)

    def test_a_resolved_scenario_gives_the_same_result(self):
        for scenario in (DATA_PARALLEL, PIPELINE):
            overrides = settings("training.sequence_length=512")
            shown = self.plant("shown.yaml", self.answer("show", "scenario", scenario, *overrides))
            self.answer("simulate", scenario, *overrides, "--resolved", "written.yaml")
            self.assertEqual((self.folder / "written.yaml").read_text(), shown.read_text())
            self.assertEqual(self.simulate(shown), self.simulate(scenario, "training.sequence_length=512"))
            self.assertEqual(self.answer("show", "scenario", shown), shown.read_text())


class MoreHardware(EndToEnd):
    def assert_never_slower(self, scenario, field, values, unit):
        times = [self.simulate(scenario, f"{field}={value} {unit}")["step_time_s"] for value in values]
        self.assertEqual(times, sorted(times, reverse=True), field)
        self.assertLess(times[-1], times[0], field)

    def test_more_bandwidth_never_slows_a_step(self):
        for scenario in (DATA_PARALLEL, PIPELINE, SCENARIOS / "gpt2-large_4xh100_tp4.yaml"):
            self.assert_never_slower(scenario, "cluster.node.nvlink_bandwidth_per_link", (5, 12, 25, 50, 100), "GB/s")
            self.assert_never_slower(scenario, "cluster.node.gpu.memory_bandwidth", (2, 3.35, 4, 5), "TB/s")

    def test_less_latency_never_slows_a_step(self):
        # NCCL plans with latencies of its own; bare links have those of the file.
        bare = self.folder / "bare.yaml"
        bare.write_text(PIPELINE.read_text() + "collectives: {nccl_messages: false}\n")
        self.assert_never_slower(bare, "cluster.node.nvlink_latency", (1000, 100, 10, 1), "us")

    def test_more_memory_lets_a_step_fit_and_changes_nothing_else(self):
        small = self.run_tessera("simulate", DATA_PARALLEL, "--format", "json",
                                 *settings("cluster.node.gpu.memory=16 GiB"))
        self.assertEqual(small.returncode, DOES_NOT_FIT)
        small_memory = json.loads(small.stdout)
        large_memory = self.simulate(DATA_PARALLEL, "cluster.node.gpu.memory=32 GiB")
        del small_memory["memory"], large_memory["memory"]
        self.assertEqual(small_memory, large_memory)


class Truth(EndToEnd):
    """What a figure says is what it seems to say."""

    IMAGES = ("model: {model}\ncluster: {cluster}\ntraining: {{framework: hf_eager, optimizer: sgd, clip_gradients: false, "
              "micro_batch: {batch}, global_batch: {batch}}}\n")
    TENSOR_AND_DATA = ("cluster=dgx-h100-x2", "training.framework=megatron", "training.precision=bf16", "model.layers=4",
                       "model.hidden=1024", "model.heads=16", "training.global_batch=32", "parallelism.tensor=4",
                       "parallelism.data=4")

    def test_utilization_is_within_the_peak_of_the_precision_that_convolutions_run_in(self):
        self.plant("images.yaml", self.IMAGES.format(model="u-net", cluster="dgx-1-v100", batch=2))
        fp16 = self.simulate("images.yaml", "training.precision=fp16")
        self.assertEqual((fp16["counted_flops"]["precision"], fp16["counted_flops"]["winograd_share"]), ("fp16", 0))
        self.assertLess(fp16["mfu"], 1)
        fp32 = self.simulate("images.yaml", "training.precision=fp32")
        self.assertGreater(fp32["mfu"], 1, "Winograd's algorithm multiplies less often than is counted")
        self.assertGreater(fp32["counted_flops"]["winograd_share"], 0.9)
        self.assertIn("Winograd", self.answer("simulate", "images.yaml", *settings("training.precision=fp32")))

    def test_the_straggler_is_the_slow_gpu_and_not_a_peer_that_waited_for_it(self):
        for slow in (0, 5, 7, 14):
            result = self.simulate(DATA_PARALLEL, *self.TENSOR_AND_DATA,
                                   f'perturbation.gpus=[{{ranks: "{slow}", slowdown: 1.5}}]')
            self.assertEqual(result["straggler"]["rank"], slow)

    def test_what_caps_a_faster_nic_and_what_joins_foreign_gpus_is_said(self):
        two_nodes = ("cluster=dgx-h100-x2", "parallelism.data=16", "training.global_batch=16")
        usual, faster = (self.simulate(DATA_PARALLEL, *two_nodes, f"cluster.node.nic_bandwidth={rate} GB/s") for rate in (50, 100))
        self.assertEqual(usual["provenance"]["link_notes"], [])
        self.assertRegex(faster["provenance"]["link_notes"][0], r"NICs carry 92 GB/s, .*gpu0->socket0\) 51.66 GB/s")
        foreign = self.simulate(DATA_PARALLEL, "cluster=dgx-h100", "cluster.node.gpu=MI300X")
        self.assertRegex(foreign["provenance"]["link_notes"][0], "links of 64 GB/s of AMD; node DGX-H100 .* 25 GB/s")

    def test_fewer_sms_at_the_same_peaks_make_no_image_model_faster(self):
        for cluster, sms in (("dgx-1-v100", 80), ("dgx-a100", 108), ("t4-pcie-4", 40)):
            self.plant("images.yaml", self.IMAGES.format(model="googlenet", cluster=cluster, batch=1))
            whole, half = (self.simulate("images.yaml", f"cluster.node.gpu.sm_count={count}") for count in (sms, sms // 2))
            self.assertGreater(half["step_time_s"], 0.99 * whole["step_time_s"], cluster)
            self.assertRegex(" ".join(half["predictor"]["notes"]), f"the {sms // 2} SMs do .* at the stated clock")


if __name__ == "__main__":
    unittest.main()
