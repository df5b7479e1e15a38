"""`tessera explain-step`: shares, critical path, what would help."""

import json
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, EndToEnd, settings

BAD_INPUT = 3


class ExplainStep(EndToEnd):
    def explain(self, scenario, *assignments):
        return json.loads(self.answer("explain-step", scenario, "--format", "json", *settings(*assignments)))

    def test_classes_of_every_rank_and_the_critical_path_add_up_to_the_step(self):
        for scenario in (DATA_PARALLEL, PIPELINE):
            story = self.explain(scenario)
            step = story["step_time_s"]
            self.assertAlmostEqual(step, self.simulate(scenario)["step_time_s"], places=12)
            for rank in story["ranks"]:
                self.assertAlmostEqual(sum(entry["seconds"] for entry in rank["classes"]), step, delta=1e-9 * step)
            path = story["critical_path"]
            self.assertAlmostEqual(sum(entry["seconds"] for entry in path["classes"]), step, delta=1e-9 * step)
            self.assertAlmostEqual(sum(entry["seconds"] for entry in path["ops"]), step, delta=1e-9 * step)
            pieces = path["pieces"]
            self.assertEqual(pieces[0]["begin_s"], 0)
            for before, after in zip(pieces, pieces[1:]):
                self.assertEqual(before["end_s"], after["begin_s"])
            self.assertNotIn("unexplained", {piece["kind"] for piece in pieces})

    def test_short_sequences_leave_the_step_to_the_host(self):
        story = self.explain(DATA_PARALLEL, "parallelism.data=1", "training.micro_batch=1", "training.global_batch=1",
                             "training.sequence_length=16", "training.mode=inference")
        self.assertEqual(story["bound_by"], "host")
        gains = {entry["resource"]: entry["elasticity"] for entry in story["sensitivities"]}
        self.assertGreater(gains["host"], 0.9)
        self.assertLess(gains["flops"], 0.1)

    def test_the_pipelines_bubble_is_told(self):
        text = self.answer("explain-step", PIPELINE, "--faster", "0")
        self.assertIn("bubble", text)
        self.assertNotIn("what would help", text)

    def test_equal_runs_give_equal_bytes(self):
        arguments = ("explain-step", PIPELINE, "--format", "json")
        self.assertEqual(self.answer(*arguments), self.answer(*arguments))

    def test_a_missing_scenario_is_bad_input(self):
        self.assert_fails(BAD_INPUT, "nowhere.yaml", "explain-step", "nowhere.yaml")


if __name__ == "__main__":
    unittest.main()
