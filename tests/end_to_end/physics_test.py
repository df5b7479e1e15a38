"""Known times, derived in sight, through the whole program."""

import json
import re
import unittest

from tessera_command import DATA_PARALLEL, EXPERTS, PIPELINE, EndToEnd, settings

ONE_GPU = ("parallelism.data=1", "training.global_batch=1")

# HGX H100 with four GPUs: six NVLinks of 25 GB/s to each peer, of which NCCL reaches 82.4 %.
LINK_BANDWIDTH = 25e9 * 0.824  # [B/s]
LINKS_PER_PEER = 6
LINK_LATENCY = 1e-6  # [s]

# NCCL's rings on NVLink, protocol LL, which a few bytes take: latency of a call and of each of its steps [s] (tuning.cc).
LOW_LATENCY_BASE, LOW_LATENCY_STEP = 6.6e-6, 0.6e-6


def ring_bytes_over_links(gpus, size, bandwidth):
    """2(n-1) steps, each of which passes size/n on, at the rate of all links of a GPU."""
    return 2 * (gpus - 1) / gpus * size / bandwidth


class OneGpu(EndToEnd):
    def kernel_times(self, scenario, *assignments):
        """Seconds of kernels per segment, from the rounded lines of `show timed`."""
        times = {}
        for line in self.answer("show", "timed", scenario, *settings(*assignments)).splitlines()[1:]:
            segment = re.match(r"(\S+): [\d.]+ ms, \d+ kernels", line)
            if segment:
                current = segment[1]
                times[current] = 0.0
            else:
                times[current] += float(line.split()[-1]) * 1e-6
        return times

    def test_a_step_is_the_sum_of_its_kernels_and_of_what_the_host_adds(self):
        kernels = self.kernel_times(DATA_PARALLEL, *ONE_GPU)
        result = self.simulate(DATA_PARALLEL, *ONE_GPU)
        runs = {segment["name"]: segment["runs"] for segment in result["segments"]}
        self.assertEqual(set(runs), set(kernels))
        busy = sum(runs[name] * kernels[name] for name in runs)
        host = result["breakdown"]["host"]["seconds"]
        self.assertAlmostEqual((busy + host) / result["step_time_s"], 1, delta=1e-4)
        self.assertLess(host, 0.01 * busy)

    def test_nothing_is_communicated_and_nobody_is_waited_for(self):
        result = self.simulate(DATA_PARALLEL, *ONE_GPU)
        self.assertEqual((result["exposed_communication_s"], result["bubble_fraction"]), (0, 0))

    def test_inference_is_the_forward_pass_alone(self):
        breakdown = self.simulate(DATA_PARALLEL, *ONE_GPU, "training.mode=inference")["breakdown"]
        self.assertGreater(breakdown["forward"]["seconds"], 0)
        for part in ("loss", "backward", "gradient_reduction", "optimizer"):
            self.assertEqual(breakdown[part]["seconds"], 0, part)


class Communication(EndToEnd):
    def test_data_parallel_ranks_reduce_all_gradients_in_one_ring(self):
        program = self.answer("show", "program", DATA_PARALLEL)
        parameters = int(re.match(r"stage 0: (\d+) parameters", program)[1])
        alone = json.loads(self.answer("collective", "--cluster", "hgx-h100-4", "--op", "all_reduce", "--bytes",
                                       str(4 * parameters), "--ranks", "0-3", "--format", "json"))
        least = ring_bytes_over_links(4, 4 * parameters, 3 * LINKS_PER_PEER * LINK_BANDWIDTH)
        self.assertEqual((alone["algorithm"], alone["protocol"]), ("ring", "simple"))
        self.assertAlmostEqual(alone["lower_bound_us"] * 1e-6 / least, 1, delta=1e-6)
        exposed = self.simulate(DATA_PARALLEL)["breakdown"]["exposed_data"]["seconds"]
        self.assertAlmostEqual(exposed / (alone["time_us"] * 1e-6), 1, delta=1e-3)
        self.assertGreater(exposed, least)

    def test_nodes_of_a_collective_are_the_first_ones_of_the_cluster(self):
        def answer(cluster, *arguments):
            return self.answer("collective", "--cluster", cluster, "--op", "all_reduce", "--bytes", "1GiB", "--format",
                               "json", *arguments)

        two = answer("dgx-h100-x8-rail", "--nodes", "2")
        self.assertEqual(two, answer("dgx-h100-x8-rail", "--ranks", "0-15"))
        self.assertEqual(json.loads(two)["ranks"], 16)
        # A single node has no more: two of its kind are those of the shipped cluster of two.
        self.assertEqual(answer("dgx-h100", "--nodes", "2"), answer("dgx-h100", "--nodes", "2", "--ranks", "0-15"))
        self.assertEqual(json.loads(answer("dgx-h100", "--nodes", "4"))["ranks"], 32)
        for arguments, words in ((("--nodes", "0"), "--nodes"), (("--nodes", "2", "--ranks", "0-16"), "GPU 16 is not on --nodes 2")):
            result = self.run_tessera("collective", "--cluster", "dgx-h100-x8-rail", "--op", "all_reduce", "--bytes",
                                      "1GiB", *arguments)
            self.assertNotEqual(result.returncode, 0, arguments)
            self.assertIn(words, result.stderr, arguments)

    def test_a_step_of_four_replicas_is_that_of_one_and_the_all_reduce(self):
        four = self.simulate(DATA_PARALLEL)
        one = self.simulate(DATA_PARALLEL, *ONE_GPU)
        self.assertAlmostEqual(four["step_time_s"] - four["breakdown"]["exposed_data"]["seconds"], one["step_time_s"],
                               delta=1e-6)

    def test_one_micro_batch_hides_no_message(self):
        # Its activations and their gradients cross three boundaries each. Six receivers wait for them, and the three
        # senders of gradients before their optimizer step, for which all four then reduce one number, the norm.
        result = self.simulate(PIPELINE, "training.global_batch=1", "model.vocab=128", "collectives.nccl_messages=false")
        hidden = int(re.search(r"(?m)^ +hidden: (\d+)$", self.answer("show", "scenario", PIPELINE))[1])
        message = LINK_LATENCY + 2048 * hidden * 4 / (LINKS_PER_PEER * LINK_BANDWIDTH)
        norm = LOW_LATENCY_BASE + 2 * 3 * LOW_LATENCY_STEP
        expected = (6 + 3) / 4 * message + norm
        self.assertAlmostEqual(result["breakdown"]["exposed_pipeline"]["seconds"] / expected, 1, delta=1e-3)


class OverlapInPipelines(EndToEnd):
    """GPT-3 13B as Megatron runs it with its distributed optimizer, on four stages of two tensor-parallel GPUs."""

    JOB = ("model=gpt3-13b", "cluster=dgx-h100-x2", "training.framework=megatron", "training.precision=bf16",
           "training.micro_batch=1", "training.global_batch=32", "parallelism.tensor=2", "parallelism.pipeline=4",
           "parallelism.data=2", "training.data_parallel.sharding=optimizer")
    INTERLEAVED = ("training.schedule=interleaved_1f1b", "parallelism.virtual_stages=5")

    def step(self, *assignments):
        return self.simulate(PIPELINE, *self.JOB, *assignments)["step_time_s"]

    def test_what_is_overlapped_makes_no_step_longer(self):
        gradients, parameters = (f"training.data_parallel.overlap_{what}=true" for what in ("gradients", "parameters"))
        for schedule in ((), self.INTERLEAVED):
            alone = self.step(*schedule)
            for overlaps in ((gradients,), (parameters,), (gradients, parameters)):
                self.assertLess(self.step(*schedule, *overlaps), 1.002 * alone, (schedule, overlaps))

    def test_products_beside_their_communication_expose_less_of_it(self):
        layout = ("parallelism.tensor=4", "parallelism.pipeline=2", "parallelism.sequence_parallel=true")
        behind, beside = (self.simulate(PIPELINE, *self.JOB, *layout, f"training.framework.tp_comm_overlap={on}")
                          for on in ("false", "true"))
        self.assertLess(beside["step_time_s"], 0.95 * behind["step_time_s"])
        exposed = [result["breakdown"]["exposed_tensor"]["seconds"] for result in (beside, behind)]
        # One chunk of four is left to wait for wherever rows are scattered; attention's products are too short.
        self.assertGreater(exposed[0], 0.1 * exposed[1])
        self.assertLess(exposed[0], 0.5 * exposed[1])

    def test_stages_that_gather_one_after_the_other_hold_each_other_up(self):
        """Four stages and eight replicas over a network where gathers take long; aligned, they are hidden behind other chunks."""
        job = (*self.INTERLEAVED, "cluster=dgx-h100-x8-clos-4to1", "parallelism.pipeline=4", "parallelism.data=8",
               "training.global_batch=64")
        for bandwidth in ("3 TB/s", "3.352 TB/s", "4 TB/s"):
            memory = f"cluster.node.gpu.memory_bandwidth={bandwidth}"
            alone = self.step(*job, memory)
            overlapped = (*job, memory, "training.data_parallel.overlap_parameters=true")
            aligned = self.step(*overlapped, "training.data_parallel.align_parameters=true")
            self.assertLess(aligned, alone)
            self.assertGreater(self.step(*overlapped), 1.02 * aligned)

    def test_stages_that_sum_one_after_the_other_hold_each_other_up(self):
        overlapped = (*self.INTERLEAVED, "training.data_parallel.overlap_gradients=true")
        self.assertGreater(self.step(*overlapped, "training.data_parallel.align_gradients=false"),
                           1.01 * self.step(*overlapped))


class ShardedExperts(EndToEnd):
    JOB = ("cluster=dgx-h100-x2", "model.layers=4", "training.global_batch=16", "training.sequence_length=1024",
           "parallelism.pipeline=1", "parallelism.data=8")

    def test_ranks_that_stand_for_others_take_their_time_and_memory(self):
        """Experts over all replicas and over some, whole ones over tensor-parallel ranks too."""
        alone = ("simulation.fold.tensor=false", "simulation.fold.data=false")
        for sharding in ("gradients", "parameters"):
            for spread in (("parallelism.expert=8",), ("parallelism.expert=2",),
                           ("parallelism.expert=4", "parallelism.expert_tensor=1", "parallelism.sequence_parallel=true")):
                job = (*self.JOB, f"training.data_parallel.sharding={sharding}", *spread)
                folded, unfolded = self.simulate(EXPERTS, *job), self.simulate(EXPERTS, *job, *alone)
                self.assertAlmostEqual(folded["step_time_s"] / unfolded["step_time_s"], 1, delta=1e-9)
                peaks = [{rank["peak_bytes"] for rank in result["memory"]["per_rank"]} for result in (folded, unfolded)]
                self.assertEqual(*peaks, job)


class PipelineSchedules(EndToEnd):
    def test_bubble_of_equal_stages_is_that_of_the_formula(self):
        stages = 4
        for micro_batches in (4, 8, 32):  # a small vocabulary makes the last stage as fast as the others
            result = self.simulate(PIPELINE, "model.vocab=128", f"training.global_batch={micro_batches}")
            expected = (stages - 1) / (micro_batches + stages - 1)
            self.assertAlmostEqual(result["bubble_fraction"], expected, delta=0.02 * expected)

    def test_a_slower_last_stage_makes_the_others_wait_longer(self):
        self.assertGreater(self.simulate(PIPELINE)["bubble_fraction"], 3 / 11)

    def test_gpipe_takes_as_long_as_1f1b_and_keeps_more_activations(self):
        one_f_one_b = self.simulate(PIPELINE)
        gpipe = self.simulate(PIPELINE, "training.schedule=gpipe")
        self.assertAlmostEqual(gpipe["step_time_s"] / one_f_one_b["step_time_s"], 1, delta=0.01)
        activations = [[rank["peak_bytes"] - rank["static_bytes"] for rank in result["memory"]["per_rank"]]
                       for result in (gpipe, one_f_one_b)]
        # Stage 0 holds all eight micro-batches instead of four, the last one eight instead of one.
        self.assertAlmostEqual(activations[0][0] / activations[1][0], 8 / 4, delta=0.2)
        self.assertGreater(activations[0][3] / activations[1][3], 3)


if __name__ == "__main__":
    unittest.main()
