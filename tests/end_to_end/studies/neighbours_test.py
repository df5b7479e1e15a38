"""`tessera neighbours`: jobs that share a cluster."""

import json
import unittest

from tessera_command import ROOT, SCENARIOS, EndToEnd, settings

TEN = ROOT / "configs/neighbours/ten-jobs-clos.yaml"
JOB = "{name: %s, scenario: gpt3-2.7b_64xh100_dp64_bf16, %s}"


def jobs(*lines, cluster="dgx-h100-x8-clos-4to1", nodes=16):
    return f"cluster: {cluster}\nset: [cluster.node_count={nodes}]\njobs:\n" + "".join(f"  - {line}\n" for line in lines)


class Neighbours(EndToEnd):
    def answer_of(self, text, *arguments):
        return json.loads(self.answer("neighbours", self.plant("jobs.yaml", text), "--format", "json", *arguments))

    def test_ten_jobs_of_64_gpus_hold_each_other_up(self):
        answer = json.loads(self.answer("neighbours", TEN, "--format", "json"))
        self.assertEqual([job["gpus"] for job in answer["jobs"]], [64] * 10)
        # Two nodes of different jobs share each leaf, whose uplinks have a quarter of its NICs' bandwidth.
        for job in answer["jobs"]:
            self.assertTrue(1.1 < job["slowdown"] < 2, job)
            self.assertTrue(job["shares_links"] and job["steps"] >= 2)
        for link in answer["links"]:
            self.assertTrue(0 <= link["several_jobs_share"] <= link["busy_share"] <= 1 + 1e-9, link)

    def test_the_table_fits_80_columns_and_says_what_it_leaves_out(self):
        table = self.answer("neighbours", TEN)
        self.assertLessEqual(max(map(len, table.splitlines())), 80)
        # nodes 3, 13 ... 73
        self.assertIn("  3, 13, 23 and 5 more\n", table)

    def test_jobs_on_leaves_of_their_own_take_exactly_their_times_alone(self):
        answer = self.answer_of(jobs(JOB % ("a", "first_node: 0"), JOB % ("b", "first_node: 8")), "--steps", 1)
        self.assertEqual(answer["links"], [])
        for job in answer["jobs"]:
            self.assertEqual(job["step_together_s"], job["step_alone_s"])
            self.assertFalse(job["shares_links"])

    def test_a_job_that_has_not_begun_disturbs_nobody(self):
        evens, odds = ("nodes: \"%s\"" % ", ".join(str(2 * i + k) for i in range(8)) for k in (0, 1))
        answer = self.answer_of(jobs(JOB % ("a", evens), JOB % ("b", odds + ", start: 10s")), "--steps", 1)
        first, second = answer["jobs"]
        # 10 s hold many steps of the first job, of which those behind the start count.
        self.assertGreater(first["steps"], 5)
        self.assertGreater(second["slowdown"], 1.1)

    def test_what_is_wrong_is_said(self):
        for text, message in [
            (jobs(JOB % ("a", "first_node: 0"), JOB % ("b", "first_node: 7")), "node 7, as the job in line"),
            (jobs(JOB % ("a", "first_node: 10")), "is on node 16, but dgx-h100-x8-clos-4to1 has 16"),
            (jobs(JOB % ("a", "nodes: 0-3")), "has 4 nodes, but its ranks fill 8"),
            (jobs(JOB % ("a", "start: 1s")), "says no nodes"),
            (jobs(JOB % ("a", "first_node: 0, set: [cluster.pue=2]")), "for one of several jobs"),
            (jobs(JOB % ("a", "first_node: 0, set: [collectives.fidelity=analytic]")), "knows no links"),
            (jobs("{scenario: no-such, first_node: 0}"), "no-such"),
            (jobs(JOB % ("a", "first_node: 0, nods: 3")), "unknown key nods"),
            ("jobs: []\n", "has no cluster"),
        ]:
            with self.subTest(message):
                self.assert_fails(3, message, "neighbours", self.plant("bad.yaml", text))

    def test_micro_batches_of_unequal_replicas_make_the_step_shorter(self):
        islands = (SCENARIOS / "gpt3-2.7b_64xh100_dp64_bf16.yaml",
                   *settings("parallelism.data=8", "training.global_batch=64", "perturbation.gpus=[{replicas: 6-7, slowdown: 2}]"))
        answer = json.loads(self.answer("plan", "micro-batches", *islands, "--format", "json"))
        counts = answer["chosen"]["micro_batches_per_replica"]
        self.assertEqual((sum(counts), answer["before"]["micro_batches_per_replica"]), (64, [8] * 8))
        # Six replicas of speed 1 and two of 1/2 share 64 micro-batches: 9.1 and 4.6.
        self.assertTrue(all(9 <= count <= 10 for count in counts[:6]) and all(4 <= count <= 5 for count in counts[6:]), counts)
        step = self.simulate(islands[0], *islands[2::2], f"parallelism.micro_batches_per_replica={counts}")["step_time_s"]
        self.assertEqual(answer["chosen"]["step_time_s"], step)
        self.assertLess(step, 0.75 * answer["before"]["step_time_s"])
        self.assert_fails(3, "gradients or parameters are divided among them", "plan", "micro-batches", *islands,
                          *settings("training.framework=fsdp", "training.data_parallel.sharding=parameters"))
        self.assert_fails(3, "perturbation.gpus: is empty: all replicas are alike", "plan", "micro-batches", islands[0])


if __name__ == "__main__":
    unittest.main()
