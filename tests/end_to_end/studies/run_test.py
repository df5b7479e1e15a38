"""`tessera run`: days of a training job on a cluster that fails."""

import csv
import json
import math
import os
import subprocess
import time
import unittest
from pathlib import Path

from tessera_command import PROGRAM, ROOT, SCENARIOS, EndToEnd, settings

MEASUREMENTS = Path(os.environ.get("TESSERA_MEASUREMENTS", ROOT / "../shared/measurements")) / "failures"
SMALL = SCENARIOS / "llama-3-8b_64xh100_tp4_cp8_bf16.yaml"
LARGE = SCENARIOS / "gpt3-175b_16384xh100_tp8_pp16_dp128.yaml"
DATA_64 = SCENARIOS / "gpt3-2.7b_64xh100_dp64_bf16.yaml"
PARTS = ("useful", "slow", "lost", "checkpoint", "detection", "restart", "waiting")
SHORT = ("--days", 90, "--failures-per-1000-node-days", 6.5, "--restart", "10min", "--checkpoint-interval", "60min",
         "--seeds", 20)
BLOOM = """
model: bloom-176b
cluster: {extends: dgx-a100, id: jean-zay, node_count: 48}
training: {framework: megatron-deepspeed, precision: bf16, sequence_length: 2048, micro_batch: 2, global_batch: 2048, recompute: full,
           data_parallel: {sharding: optimizer}}
parallelism: {tensor: 4, pipeline: 12, data: 8, embedding_as_layer: true, head_as_layer: true}
"""


def with_replicas(replicas, micro_batches):
    return f"parallelism.data={replicas}", f"training.global_batch={replicas * micro_batches}"


def rows(name):
    with open(MEASUREMENTS / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class Run(EndToEnd):
    def run_json(self, *arguments):
        return json.loads(self.answer("run", *arguments, "--format", "json"))

    def test_the_short_way(self):
        answer = self.run_json(SMALL, *SHORT)
        step = self.simulate(SMALL)["step_time_s"]
        self.assertEqual(answer["step_time_s"], step)
        self.assertEqual((answer["nodes"], answer["gpus"], answer["seeds"]), (8, 64, 20))
        self.assertAlmostEqual(sum(answer["hours"][part]["mean"] for part in PARTS), 90 * 24, places=6)
        ratio = answer["effective_training_time_ratio"]
        low, high = answer["effective_training_time_ratio_80"]
        self.assertTrue(0.9 < low <= ratio <= high < 1)
        self.assertEqual(answer["goodput"], ratio)
        # 1,000 / (6.5 * 8) days, from 94 stops: within three of their standard errors.
        self.assertAlmostEqual(answer["mean_time_to_failure_h"], 24 * 1000 / (6.5 * 8), delta=0.3 * 461.5)
        advice = answer["checkpoint_interval"]
        self.assertAlmostEqual(advice["young_s"], math.sqrt(2 * answer["checkpoint_s"] * 24e6 / 52 * 3.6), delta=0.01)
        # Whole steps.
        self.assertAlmostEqual(advice["used_s"] / step, round(3600 / step), places=3)
        loss = answer["causes"]["node"]
        self.assertEqual(answer["lost_by_cause"], {"node": loss["hours"]})
        self.assertAlmostEqual(loss["hours"], loss["lost_work_h"] + loss["restart_h"], places=9)
        self.assertAlmostEqual(loss["restart_h"], loss["stops"] / 6, delta=0.1)

    def test_images_are_counted_where_there_are_no_tokens(self):
        images = (SCENARIOS / "resnet-50_8xv100_dp8.yaml", "--failures-per-1000-node-days", 6.5)
        text = self.answer("run", *images)
        self.assertEqual((text.count(" samples/s\n"), text.count(" tokens/s")), (2, 0))
        self.assertGreater(self.run_json(*images)["samples_per_s"], 100)
        self.assert_fails(3, "--tokens: is given, but the model has no tokens", "run", *images, "--tokens", 1e9)

    def test_equal_seeds_are_equal_answers(self):
        self.assertEqual(self.answer("run", SMALL, *SHORT), self.answer("run", SMALL, *SHORT))
        self.assertNotEqual(self.answer("run", SMALL, *SHORT), self.answer("run", SMALL, *SHORT, "--seed", 1000))

    def test_the_table_is_80_columns_wide_and_draws_every_day(self):
        text = self.answer("run", SMALL, "--failures", "llama3-405b", "--spares", 2, "--tokens", "2e11",
                           "--storage-bandwidth", "20GB/s", "--memory-interval", "10min")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for words in ("effective time", "Young / Daly", "lost by cause", "where the time goes", "faulty GPU", "2e+11 tokens in",
                      "spares for 99 %", "in memory every"):
            self.assertIn(words, text)
        self.assertEqual(sum(line.startswith("day ") for line in text.splitlines()), 30)

    def test_without_failures_only_checkpoints_cost(self):
        answer = self.run_json(SMALL, "--failures-per-1000-node-days", 0, "--checkpoint-time", "36s", "--days", 10)
        self.assertIsNone(answer["mean_time_to_failure_h"])
        # 36 s an hour, 236 of them in 240 h.
        self.assertAlmostEqual(answer["effective_training_time_ratio"], 1 / 1.01, delta=1e-3)
        self.assertEqual(answer["checkpoint_s"], 36)

    def test_checkpoints_hold_weights_and_states_over_the_links(self):
        answer = self.run_json(SMALL, *SHORT, "--storage-bandwidth", "10GB/s")
        # 8.03e9 parameters in bf16, with fp32 master weights and two moments.
        self.assertAlmostEqual(answer["checkpoint"]["bytes"], 8.03e9 * 14, delta=0.01 * 8.03e9 * 14)
        self.assertAlmostEqual(answer["checkpoint_s"], answer["checkpoint"]["bytes"] / 10e9, places=6)
        self.assertEqual(answer["checkpoint"]["slowest"], "storage")
        beside = self.run_json(SMALL, *SHORT, "--storage-bandwidth", "10GB/s", "--asynchronous")
        self.assertEqual(beside["checkpoint_s"], answer["checkpoint_s"])
        self.assertLess(beside["checkpoint"]["blocking_s"], 1)
        self.assertGreater(beside["effective_training_time_ratio"], answer["effective_training_time_ratio"])

    def test_spares_and_elastic_jobs_do_not_wait(self):
        often = (SCENARIOS / "gpt3-2.7b_64xh100_dp64_bf16.yaml", "--days", 90, "--failures-per-1000-node-days", 50,
                 "--repair", "48h")
        alone = self.run_json(*often)
        spared = self.run_json(*often, "--spares", 4)
        elastic = self.run_json(*often, "--policy", "elastic")
        self.assertGreater(alone["hours"]["waiting"]["mean"], 20 * 24)
        self.assertLess(spared["hours"]["waiting"]["mean"], 24)
        self.assertAlmostEqual(spared["goodput"], spared["effective_training_time_ratio"] * 8 / 12, delta=1e-12)
        self.assertEqual(elastic["hours"]["waiting"]["mean"], 0)
        self.assertGreater(elastic["hours"]["slow"]["mean"], 24)
        self.assertGreater(elastic["effective_training_time_ratio"], alone["effective_training_time_ratio"])
        self.assertGreater(spared["effective_training_time_ratio"], elastic["effective_training_time_ratio"])

    def test_a_kept_batch_makes_steps_longer_and_a_smaller_one_trains_fewer_samples(self):
        often = (DATA_64, "--days", 90, "--failures-per-1000-node-days", 50, "--repair", "48h", "--policy", "elastic")
        whole = self.simulate(DATA_64)["step_time_s"]
        kept, smaller = (self.run_json(*often, "--batch", batch) for batch in ("kept", "smaller"))
        # 64 replicas of 4 micro-batches; a node takes eight of them: 256 on 56 are 5 for most.
        for answer, micro_batches in ((kept, 5), (smaller, 4)):
            fewer = answer["fewer_replicas"]
            self.assertEqual((fewer["replicas"], fewer["samples"], fewer["micro_batches"]), (64, 256, 4))
            one = fewer["steps_with_fewer"][0]
            self.assertEqual(one["micro_batches"], micro_batches)
            step = self.simulate(DATA_64, *with_replicas(one["replicas"], micro_batches))["step_time_s"]
            self.assertEqual(one["step_time_s"], step)
        self.assertEqual(kept["fewer_replicas"]["least_samples"], 256)
        self.assertGreater(kept["fewer_replicas"]["steps_with_fewer"][0]["step_time_s"], 1.1 * whole)
        least = smaller["fewer_replicas"]
        self.assertEqual(least["least_samples"], 4 * least["least_replicas"])
        # Nobody fills the fifth micro-batch of a kept batch.
        self.assertLess(kept["effective_training_time_ratio"], smaller["effective_training_time_ratio"])
        self.assertEqual(self.run_json(*often)["fewer_replicas"]["batch"], "kept")

    def test_the_pace_of_fewer_replicas_is_what_the_hours_say(self):
        # One node is out for the last 20 of 40 days: 56 of 64 replicas.
        trace = self.plant("out.csv", "node,start_day,end_day\n3,20,40\n")
        answer = self.run_json(DATA_64, "--fault-trace", trace, "--days", 40, "--policy", "elastic", "--checkpoint-time", "0s", "--restart", "0s")
        one = answer["fewer_replicas"]["steps_with_fewer"][0]
        pace = answer["step_time_s"] / one["step_time_s"]
        self.assertEqual(one["replicas"], 56)
        self.assertAlmostEqual(answer["fewer_replicas"]["hours_with_fewer"]["mean"], 20 * 24, places=3)
        self.assertAlmostEqual(answer["effective_training_time_ratio"], (1 + pace) / 2, delta=0.002)

    def test_replicas_that_share_experts_leave_together(self):
        mixtral = SCENARIOS / "mixtral-8x7b_64xh100_tp2_pp4_ep8_bf16.yaml"
        answer = self.run_json(mixtral, *SHORT, "--repair", "24h", "--policy", "elastic")
        # Eight replicas share the experts: there are no others, and the job waits for its node.
        self.assertEqual(answer["fewer_replicas"]["leave_together"], answer["fewer_replicas"]["replicas"])
        self.assertEqual(answer["fewer_replicas"]["hours_with_fewer"]["mean"], 0)
        self.assertGreater(answer["hours"]["waiting"]["mean"], 24)

    def test_who_watches_decides_when_a_failure_is_noticed(self):
        failures = self.plant("watch.yaml", "failures:\n  - {component: host, per_1000_node_days: 100, detection: 1h}\n"
                                            "  - {component: nic, per_1000_node_days: 100, detection: 1h}\n")
        base = (SMALL, "--failures", failures, "--days", 30)
        stated = self.run_json(*base)
        self.assertEqual(stated["detection_s"], {"host": 3600, "nic": 3600})
        watched = self.run_json(*base, "--heartbeat", "30s")
        self.assertEqual(watched["detection_s"], {"host": 30, "nic": 3600})
        both = self.run_json(*base, "--heartbeat", "30s", "--collective-timeout", "10min")
        self.assertEqual(both["detection_s"], {"host": 30, "nic": 600})
        self.assertLess(both["hours"]["detection"]["mean"], watched["hours"]["detection"]["mean"] / 4)
        steps = self.run_json(*base, "--progress-steps", 5)
        self.assertAlmostEqual(steps["detection_s"]["nic"], 5 * steps["step_time_s"], places=9)

    def test_slow_nodes_are_evicted_or_kept(self):
        failures = self.plant("slow.yaml", "failures:\n  - {name: slow, component: gpu, per_1000_node_days: 100, detection: 10min, repair: 2h, slowdown: 1.02}\n"
                                           "  - {name: crash, component: software, per_1000_node_days: 100}\n")
        base = (SMALL, "--failures", failures, "--days", 60, "--spares", 1, "--restart", "20min")
        evict, keep = (self.run_json(*base, "--stragglers", what) for what in ("evict", "keep"))
        self.assertGreater(evict["causes"]["slow"]["stops"], 30)
        self.assertEqual(keep["causes"]["slow"]["stops"], 0)
        self.assertGreater(keep["causes"]["slow"]["slow_h"], 5 * evict["causes"]["slow"]["slow_h"])
        # Two per cent slower for some 30 h costs less than a restart of 20 min with half an hour of lost work.
        self.assertGreater(keep["effective_training_time_ratio"], evict["effective_training_time_ratio"])

    def test_the_section_says_what_the_options_say(self):
        section = settings("reliability.batch=smaller", "reliability.keep_slow_nodes=true", "reliability.heartbeat=30s", "reliability.policy=elastic",
                           "reliability.failures_per_1000_node_days=50", "reliability.repair=48h")
        options = ("--batch", "smaller", "--stragglers", "keep", "--heartbeat", "30s", "--policy", "elastic", "--failures-per-1000-node-days", 50, "--repair", "48h")
        self.assertEqual(self.run_json(DATA_64, *section, "--days", 20), self.run_json(DATA_64, *options, "--days", 20))

    def test_a_slow_gpu_slows_the_job_as_its_simulated_step_says(self):
        state = "perturbation.gpus=[{ranks: 0, slowdown: 1.5}]"
        failures = self.plant("f.yaml", "failures: [{name: slow GPU, component: gpu, per_1000_node_days: 400, "
                              f"detection: 2h, repair: 1h, set: ['{state}']}}]\n")
        answer = self.run_json(SMALL, "--failures", failures, "--spares", 4)
        factor = self.simulate(SMALL, state)["step_time_s"] / self.simulate(SMALL)["step_time_s"]
        self.assertGreater(factor, 1.2)
        self.assertIn(f"slow GPU: steps take {factor:.3f} times as long", answer["notes"])
        # Each is there for two hours, in which 1 - 1 / factor of the training is missing.
        slow = answer["causes"]["slow GPU"]
        self.assertAlmostEqual(slow["slow_h"] / slow["stops"], 2 * (1 - 1 / factor), delta=0.15 * slow["slow_h"] / slow["stops"])

    def test_tokens_take_longer_with_failures(self):
        answer = self.run_json(SMALL, *SHORT, "--tokens", 1e12)
        goal = answer["time_to_tokens"]
        self.assertAlmostEqual(goal["hours_without_failures"], 1e12 / answer["tokens_per_s"] / 3600, places=6)
        self.assertAlmostEqual(goal["hours"]["mean"], goal["hours_without_failures"] / answer["effective_training_time_ratio"],
                               delta=0.01 * goal["hours"]["mean"])
        self.assertEqual(goal["runs_that_reached_it"], 20)
        days = goal["hours"]["high"] / 24
        for deadline, in_time in ((1.01 * days, True), (0.99 * days, False)):
            self.assertIs(self.run_json(SMALL, *SHORT, "--tokens", 1e12, "--deadline", deadline)["time_to_tokens"]["in_time"], in_time)

    def test_a_run_shorter_than_its_interval_says_so(self):
        short = self.run_json(SMALL, "--failures-per-1000-node-days", 6.5, "--days", 0.01)
        self.assertIn("the run is over before its first checkpoint", short["notes"])
        self.assertEqual(short["hours"]["checkpoint"]["mean"], 0)
        days = self.run_json(SMALL, "--failures-per-1000-node-days", 6.5, "--checkpoint-interval", "1d", "--days", 3)
        self.assertAlmostEqual(days["checkpoint_interval"]["used_s"], 86400, delta=days["step_time_s"])

    def test_a_year_of_16384_gpus_takes_seconds(self):
        start = time.monotonic()
        answer = self.run_json(LARGE, "--days", 365, "--failures-per-1000-node-days", 2.675, "--restart", "10min", "--repair",
                               "24h", "--spares", 16, "--storage-bandwidth", "500GB/s", "--seeds", 100)
        self.assertAlmostEqual(answer["stops"]["mean"], 2000, delta=30)
        self.assertLess(time.monotonic() - start, 20)  # unoptimized builds as well

    def test_variants_are_runs_of_their_own(self):
        base = (SMALL, "--days", 20, "--failures-per-1000-node-days", 20, "--repair", "24h")
        answer = self.run_json(*base, "--vary", "spares=0,2", "--vary", "checkpoint-interval=10min,1h")
        self.assertEqual([one["settings"] for one in answer["variants"]],
                         [{"spares": spares, "checkpoint-interval": interval} for spares in "02" for interval in ("10min", "1h")])
        for one in answer["variants"]:
            alone = self.run_json(*base, *(word for name, value in one["settings"].items() for word in (f"--{name}", value)))
            for key in ("effective_training_time_ratio", "goodput", "mean_time_to_failure_h"):
                self.assertEqual(one[key], alone[key])
        text = self.answer("run", *base, "--vary", "policy=restart,elastic")
        self.assertEqual(text.count("policy "), 2)
        self.assertIn("*", text.splitlines()[2])

    def test_a_killed_table_goes_on_behind_its_last_line(self):
        store = self.folder / "runs.txt"
        arguments = ["run", SMALL, *SHORT[:-2], "--vary", "policy=restart,elastic,replica-wise", "--vary", "spares=" + ",".join(map(str, range(12))),
                     "--repair", "24h", "--seeds", "200", "--format", "json"]
        whole = self.answer(*arguments)
        with subprocess.Popen([PROGRAM, *map(str, arguments), "--store", str(store)], stdout=subprocess.PIPE) as process:
            while process.poll() is None and (not store.exists() or len(store.read_text().splitlines()) < 4):
                time.sleep(0.002)
            process.kill()
        lines = store.read_text().splitlines()
        self.assertGreaterEqual(len(lines), 4)
        store.write_text("\n".join(lines)[:-20])  # cut off in the middle of a line
        self.assertEqual(self.answer(*arguments, "--store", store), whole)
        kept = store.read_text().splitlines()
        self.assertEqual(self.answer(*arguments, "--store", store), whole)
        self.assertEqual(store.read_text().splitlines(), kept)
        self.assertIn(len(kept), (37, 38))  # a head, 36 lines, and the one that was cut off
        # Other failures are other runs.
        self.assertNotEqual(self.answer(*arguments, "--seed", 7, "--store", store), whole)

    def test_replica_wise_jobs_lose_no_work_while_replicas_are_left(self):
        plain, answer = (self.run_json(SMALL, *SHORT, "--repair", "24h", "--spares", 2, "--policy", policy) for policy in ("restart", "replica-wise"))
        # Two replicas: both are gone at once where the second fails in the 10 min that the first takes to be back.
        self.assertLess(answer["stops"]["mean"], 0.1 * plain["stops"]["mean"])
        self.assertLess(answer["hours"]["lost"]["mean"], 0.1 * plain["hours"]["lost"]["mean"])
        # Half speed for 10 min each.
        self.assertAlmostEqual(answer["hours"]["slow"]["mean"], plain["stops"]["mean"] / 12, delta=0.1)
        self.assertGreater(answer["effective_training_time_ratio"], plain["effective_training_time_ratio"])

    def test_a_write_beside_training_slows_it_where_links_are_shared(self):
        step = self.simulate(SMALL)["step_time_s"]
        answer = self.run_json(SMALL, *SHORT, "--asynchronous", "--set", "cluster.node.nic_bandwidth=2GB/s")
        self.assertGreater(answer["checkpoint"]["write_slowdown"], 1.01)
        fast = self.run_json(SMALL, *SHORT, "--asynchronous", "--storage-bandwidth", "1GB/s")
        self.assertLess(fast["checkpoint"]["write_slowdown"], 1.01)
        self.assertGreater(step, 0)

    def test_all_nodes_write_into_one_storage_over_the_fabric(self):
        # Leaves of two nodes whose uplinks carry an eighth of what comes from below: what four leaves write crosses them.
        clos = settings("cluster.fabric={kind: clos, nodes_per_leaf: 2, spines: 1, leaf_oversubscription: 8}")
        plain, crossing = (self.run_json(SMALL, *SHORT, "--storage-bandwidth", "1TB/s", *more) for more in ((), clos))
        self.assertNotEqual(plain["checkpoint"]["slowest"], "links on the way")
        self.assertEqual(crossing["checkpoint"]["slowest"], "links on the way")
        self.assertGreater(crossing["checkpoint_s"], 1.5 * plain["checkpoint_s"])

    def test_nodes_and_racks_draw_what_their_gpus_and_hosts_do(self):
        power = self.run_json(SMALL, *SHORT, *settings("cluster.nodes_per_rack=4", "cluster.node.host_power=2kW"))["power"]
        self.assertAlmostEqual(power["rack_mean_w"], 4 * power["node_mean_w"], delta=1)
        self.assertTrue(2000 + 8 * 105 < power["node_mean_w"] <= power["node_peak_w"] <= 2000 + 8 * 700)
        self.assertIsNone(self.run_json(SMALL, *SHORT)["power"]["rack_mean_w"])

    def test_an_estimated_host_power_is_said_to_be_one(self):
        given = "cluster.node.host_power=2kW"  # the catalog's figure of a DGX H100 is scaled from another node
        self.assertIs(self.run_json(SMALL, *SHORT)["power"]["host_power_confirmed"], False)
        self.assertIn("host_power is estimated", self.answer("run", SMALL, *SHORT))
        self.assertIn("host_power is estimated", self.answer("simulate", SMALL))
        self.assertIs(self.run_json(SMALL, *SHORT, *settings(given))["power"]["host_power_confirmed"], True)
        self.assertNotIn("host_power is estimated", self.answer("simulate", SMALL, *settings(given)))
        unknown = self.answer("run", SMALL, *SHORT, *settings("cluster.node.gpu.tdp=0W", "cluster.node.gpu.price=0"))
        self.assertIn("not known: H100-SXM5-80GB has no tdp", unknown)
        self.assertIn("not known: no price", unknown)
        alone = self.run_json(SCENARIOS / "gpt2-large_4xh100_dp4.yaml", "--failures-per-1000-node-days", 6.5)
        self.assertIsNone(alone["power"]["host_power_confirmed"])

    def test_gpus_of_another_kind_are_paid_for_as_such(self):
        prices = self.plant("kinds.csv", "gpu,region,date,kind,dollars_per_hour,source\n"
                                         "H100-SXM5-80GB,east,2026-10-01,on_demand,3.00,a\nA100-SXM4-80GB,east,2026-10-01,on_demand,1.00,a\n")
        half = settings("perturbation.gpus=[{ranks: 0-31, gpu: A100-SXM4-80GB}]")
        answer = self.run_json(SMALL, *SHORT, "--prices", prices, *half)
        self.assertAlmostEqual(answer["dollars"], 2 * 64 * 90 * 24, delta=1)

    def test_spot_prices_and_the_cheapest_by_a_deadline(self):
        prices = self.plant("prices.csv", """gpu,region,date,kind,dollars_per_hour,interruptions_per_1000_node_days,notice,replacement,source
H100-SXM5-80GB,east,2026-10-01,on_demand,3.00,,,,contract 17
H100-SXM5-80GB,east,2026-10-01,spot,1.00,400,2min,15min,list
H100-SXM5-80GB,east,2026-12-01,spot,9.00,400,2min,15min,list
""")
        by_date = ("--prices", prices, "--price-date", "2026-11-01")
        plain = self.run_json(SMALL, *SHORT, *by_date)
        self.assertAlmostEqual(plain["dollars"], 64 * 3 * 90 * 24, places=3)
        spot = self.run_json(SMALL, *SHORT, *by_date, "--spot")
        self.assertAlmostEqual(spot["dollars"], 64 * 90 * 24, places=3)
        # 8 nodes x 0.4 a day
        self.assertAlmostEqual(spot["causes"]["spot interruption"]["events"], 288, delta=30)
        table = json.loads(self.answer("run", SMALL, *SHORT, *by_date, "--spot", "--tokens", "1e12", "--deadline", "40", "--vary", "spares=0,1,2",
                                       "--format", "json"))
        dollars = [line["time_to_tokens"]["dollars"] for line in table["variants"]]
        in_time = [i for i, line in enumerate(table["variants"]) if line["time_to_tokens"]["in_time"]]
        self.assertEqual(table["cheapest"], min(in_time, key=lambda i: dollars[i]) if in_time else None)
        self.assert_fails(3, "has no price of", "run", SMALL, *SHORT, "--prices", prices, "--region", "west")
        self.assert_fails(3, "--prices", "run", SMALL, *SHORT, "--spot")

    def test_a_page_shows_every_day(self):
        answer = self.run_json(SMALL, *SHORT, "--report", "month.html")
        page = self.page("month.html")
        self.assertEqual([row["name"] for row in page["ranks"]["rows"]], ["first seed", *(f"day {day}" for day in range(1, 91, 2))])
        for row in page["ranks"]["rows"]:
            self.assertAlmostEqual(sum(row["shares"]), 1, places=6)
        figures = {figure["name"]: figure["value"] for figure in page["summary"]}
        self.assertAlmostEqual(figures["effective time [%]"], 100 * answer["effective_training_time_ratio"], places=9)
        self.assertEqual([table["title"] for table in page["tables"]], ["Hours", "Lost by cause"])

    def test_a_step_that_does_not_fit_is_said(self):
        result = self.run_tessera("run", SCENARIOS / "gpt3-175b_1024xh100_tp8_pp8_dp16.yaml", *SHORT, "--format", "json")
        self.assertEqual(result.returncode, 4)
        self.assertFalse(json.loads(result.stdout)["fits"])

    def test_every_shipped_description_runs(self):
        names = sorted(path.stem for path in (ROOT / "configs/reliability").glob("*.yaml"))
        self.assertGreaterEqual(len(names), 3)
        for name in names:
            answer = self.run_json(SMALL, "--failures", name, "--spares", 2, "--seeds", 2)
            self.assertGreater(answer["checkpoint_interval"]["mean_time_to_failure_by_rates_h"], 1, name)
        # 466 interruptions of 2,048 nodes in 54 days.
        answer = self.run_json(SMALL, "--failures", "llama3-405b", "--seeds", 2)
        self.assertAlmostEqual(answer["checkpoint_interval"]["mean_time_to_failure_by_rates_h"], 54 * 24 / 466 * 2048 / 8)

    def test_what_is_wrong_is_said(self):
        rate = ("--failures-per-1000-node-days", 6.5)
        cases = (
            ((), "--failures-per-1000-node-days: is missing; give one of"),
            ((*rate, "--failures", "rsc-1"), "--failures: is one of several descriptions of failures"),
            (("--failures", "rsc-2"), "rsc-2: no such file, and no file of failures that is shipped; did you mean rsc-1? (tessera list reliability)"),
            (("--failures", "rsc-1", "--repair", "3h"), "--repair: is 3h, but each failure says its own"),
            ((*rate, "--restart", "10 minutes"), "--restart: "),
            ((*rate, "--checkpoint-interval", "0s"), "--checkpoint-interval: is 0s; give more than 0 s"),
            ((*rate, "--policy", "elastic", "--least-replicas", 99), "--least-replicas: is 99, but the job has 2"),
            ((*rate, "--storage-bandwidth", "0 GB/s"), "--storage-bandwidth: is 0 GB/s; give more than 0 B/s"),
            (("--failures-per-1000-node-days", 1e9), "failures in each of 20 runs; give fewer --days or --seeds"),
            ((*rate, "--memory-interval", "1us"), "--checkpoint-interval: makes more than five million checkpoints"),
            ((*rate, "--vary", "spare=1,2"), "--vary: spare is nothing that can vary; did you mean spares?"),
            ((*rate, "--vary", "spares=1.5"), "--vary: has 1.5"),
            ((*rate, "--vary", "spares"), "--vary: is spares; give values, as spares=A,B,C"),
            ((*rate, "--vary", "restart=1min,x"), "--restart: "),
            (("--fault-trace", "none.csv"), "none.csv"),
            ((*rate, "--batch", "smaller"), "--batch: has no effect on --policy restart"),
            ((*rate, "--least-replicas", 2), "--least-replicas: has no effect on --policy restart"),
            ((*rate, "--progress-steps", 1), "--progress-steps: is at most one step"),
            ((*rate, "--heartbeat", "0s"), "--heartbeat: is 0s; give more than 0 s"),
            ((*rate, "--heartbeat", "30s", "--detection", "1min"), "--detection: is 1min beside heartbeat 30.0 s"),
            ((*rate, "--policy", "elastic", *settings("perturbation.gpus=[{replicas: 1, slowdown: 2}]")), "perturbation.gpus tells replicas apart"),
            ((*rate, "--policy", "replica-wise", *settings("training.data_parallel.sharding=optimizer")), "are divided among all replicas"),
            ((*rate, "--policy", "replica-wise", *settings("parallelism.data=1", "parallelism.tensor=8")), "the job has one replica"),
            ((*rate, *settings("training.mode=inference")), "is no training"),
        )
        for arguments, message in cases:
            with self.subTest(message):
                self.assert_fails(3, message, "run", SMALL, *arguments)
        self.assert_fails(2, "--days", "run", SMALL, *rate, "--days", 0)

    def test_a_record_of_faults_is_replayed(self):
        trace = self.plant("trace.csv", "node,component,start_day,end_day\n0,GPU,1,2\n0,GPU,1.5,3\n9,NIC,2,4\n")
        answer = self.run_json(SMALL, "--fault-trace", trace, "--trace-nodes", 20)
        self.assertEqual(answer["days"], 4)
        # Node 0 for two days, node 9 for two of four, of 20.
        self.assertEqual(answer["fault_trace"]["lost_node_hours"], 96)
        self.assertAlmostEqual(answer["fault_trace"]["availability"], 1 - 4 / 80)
        self.assertAlmostEqual(answer["node_hours_out"], 48, places=9)
        self.assertAlmostEqual(answer["hours"]["waiting"]["mean"], 48, places=5)
        self.assertEqual([span["activity"] for span in answer["timeline"]],
                         ["training", "lost", "waiting", "restart", "training"])
        self.assert_fails(3, "has no rows; give a line for each fault", "run", SMALL, "--fault-trace", self.plant("none.csv", "node,start_day,end_day\n"))
        late = self.run_json(SMALL, "--fault-trace", trace, "--detection", "1h")
        self.assertAlmostEqual(late["hours"]["detection"]["mean"], 1, places=9)
        self.assert_fails(3, "--trace-nodes: is 5", "run", SMALL, "--fault-trace", trace, "--trace-nodes", 5)


@unittest.skipUnless(MEASUREMENTS.is_dir(), "no measurements of failures; set TESSERA_MEASUREMENTS")
class Measured(EndToEnd):
    def run_json(self, *arguments):
        return json.loads(self.answer("run", *arguments, "--format", "json"))

    def test_the_fault_trace_of_400_nodes(self):
        faults = rows("fault_trace_400_nodes.csv")
        answer = self.run_json(SMALL, "--fault-trace", MEASUREMENTS / "fault_trace_400_nodes.csv", "--trace-nodes", 400)
        hours = 24 * sum(float(row["end_day"]) - float(row["start_day"]) for row in faults)
        days = max(float(row["end_day"]) for row in faults)
        self.assertEqual(answer["fault_trace"]["faults"], len(faults))
        self.assertAlmostEqual(answer["fault_trace"]["lost_node_hours"] / hours, 1, delta=0.001)
        self.assertAlmostEqual(answer["fault_trace"]["availability"], 1 - hours / 24 / 400 / days, delta=0.0001)

    def test_time_to_failure_against_size(self):
        figures = {row["n_gpus"]: float(row["value"]) for row in rows("failure_rates.csv")
                   if row["cluster"].startswith("RSC-1") and row["quantity"] == "job MTTF"}
        short = ("--days", 90, "--restart", "5min", "--checkpoint-interval", "10min", "--seeds", 10)
        # The projected figure has the cluster's rate.
        answer = self.run_json(LARGE, "--failures-per-1000-node-days", 6.5, *short)
        self.assertAlmostEqual(answer["mean_time_to_failure_h"], figures["16384"], delta=0.15 * figures["16384"])
        # The measured ones of jobs on 8 and on 1,024 GPUs agree with one another: from the first follows the second.
        rate = 1000 / figures["8"]
        answer = self.run_json(SCENARIOS / "gpt3-175b_1024xh100_tp8_pp8_dp16.yaml", *settings("training.precision=bf16", "training.data_parallel.sharding=optimizer"), "--failures-per-1000-node-days", rate, *short)
        self.assertAlmostEqual(answer["mean_time_to_failure_h"], figures["1024"], delta=0.15 * figures["1024"])

    def test_the_checkpoint_of_bloom(self):
        bloom = next(row for row in rows("checkpoints.csv") if row["study"] == "BLOOM-176B")
        answer = self.run_json(self.plant("bloom.yaml", BLOOM), "--failures-per-1000-node-days", 6.5,
                               "--storage-bandwidth", bloom["rate_GBps"] + " GB/s")
        self.assertAlmostEqual(answer["checkpoint"]["bytes"] / float(bloom["checkpoint_bytes"]), 1, delta=0.1)
        self.assertAlmostEqual(answer["checkpoint_s"] / float(bloom["write_s"]), 1, delta=0.1)

    def test_llama_3_reaches_its_effective_time_with_short_restarts(self):
        published = next(row for row in rows("goodput_runs.csv") if row["run"] == "Llama 3 405B")
        # Interruptions are given; interval and restart are not: near Young's 4 min, and 10 min.
        answer = self.run_json(LARGE, "--days", published["days"], "--failures", "llama3-405b", "--spares", 96,
                               "--storage-bandwidth", "2TB/s", "--restart", "10min", "--checkpoint-interval", "5min")
        self.assertAlmostEqual(answer["stops"]["mean"], 466, delta=15)
        self.assertAlmostEqual(100 * answer["effective_training_time_ratio"], float(published["value_percent"]), delta=3)


if __name__ == "__main__":
    unittest.main()
