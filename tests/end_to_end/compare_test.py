"""`tessera compare`: scenarios, saved results and traces beside each other."""

import json
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, EndToEnd

BAD_INPUT = 3
TRACE = {"schemaVersion": 1, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ampere_sgemm_128x64_nn", "ts": 10.0, "dur": 90000.0, "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 90010.0, "dur": 1e4, "args": {"correlation": 2}}]}


class Compare(EndToEnd):
    def compare(self, *arguments):
        return json.loads(self.answer("compare", *arguments, "--format", "json"))

    def test_a_scenario_equals_its_saved_result(self):
        self.plant("saved.json", self.answer("simulate", DATA_PARALLEL, "--format", "json"))
        comparison = self.compare("saved.json", DATA_PARALLEL)
        self.assertEqual(comparison["difference_pct"], 0)
        self.assertEqual({row["difference_s"] for row in comparison["phases"] + comparison["classes"]}, {0})

    def test_what_differs_is_named_and_differences_add_up(self):
        comparison = self.compare(DATA_PARALLEL, DATA_PARALLEL, "--set-b", "training.micro_batch=2",
                                  "--set-b", "training.global_batch=8")
        difference = comparison["b"]["step_time_s"] - comparison["a"]["step_time_s"]
        self.assertGreater(difference, 0)
        self.assertAlmostEqual(sum(row["difference_s"] for row in comparison["phases"]), difference, places=9)
        comparison = self.compare(DATA_PARALLEL, PIPELINE)
        self.assertIn("pipeline", {entry["name"] for entry in comparison["setup"]})

    def test_a_trace_is_compared_in_its_own_terms(self):
        self.plant("trace.json", json.dumps(TRACE))
        comparison = self.compare(DATA_PARALLEL, "trace.json")
        self.assertAlmostEqual(comparison["b"]["step_time_s"], 0.1)
        self.assertEqual({row["name"] for row in comparison["phases"]},
                         {"forward", "backward", "optimizer", "contention", "communication", "idle"})
        self.assertIn("B: trace.json (trace; no ProfilerStep, and no step that repeats: all kernels count as one step",
                      " ".join(self.answer("compare", DATA_PARALLEL, "trace.json").split()))

    def test_other_files_are_bad_input(self):
        self.plant("other.json", "{}")
        self.assert_fails(BAD_INPUT, "other.json", "compare", DATA_PARALLEL, "other.json")
        self.assert_fails(BAD_INPUT, "nowhere.json", "compare", "nowhere.json", DATA_PARALLEL)


if __name__ == "__main__":
    unittest.main()
