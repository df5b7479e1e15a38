"""The accuracy that results/README.md reports. Nothing is fitted to these rows: a miss is a fault of the model."""

import json
import unittest

from tessera_command import EndToEnd

SEEN_GPUS = ("V100-PCIe-32GB", "P100-PCIe-16GB", "A100-PCIe-40GB")
EAGER = ("inference", "training")


def errors(rows):
    return [abs(row["error_pct"]) for row in rows]


def mean(values):
    return sum(values) / len(values)


class Reproduction(EndToEnd):
    def setUp(self):
        super().setUp()
        self.rows = json.loads(self.answer("reproduce", "neusight", "--format", "json"))["rows"]

    def test_all_writes_the_tables_that_the_accuracy_page_is_made_from(self):
        self.run_tessera("reproduce", "--all", "tables")
        self.assertEqual((self.folder / "tables/neusight.txt").read_text(), self.answer("reproduce", "neusight"))
        runs = self.plant("runs.csv", "id,gpu,n_gpus,precision,family,layers,hidden,heads,vocab,seq_len,global_batch,step_time_s\n"
                          "half,A100-SXM4-80GB,1,bf16,gpt,2,256,4,1024,128,2,0.01\n"
                          "single,A100-SXM4-80GB,1,fp32,gpt,2,256,4,1024,128,2,0.01\n")
        self.assertEqual(self.run_tessera("reproduce", "--all", "tables", "--runs", runs).returncode, 0)
        steps = (self.folder / "tables/training_runs.txt").read_text()
        self.assertIn("half", steps)
        self.assertNotIn("single", steps, "only those in 16 bit are on the page")

    def test_all_or_one_study(self):
        self.assert_fails(2, "", "reproduce")
        self.assert_fails(2, "", "reproduce", "neusight", "--all", "tables")
        self.assert_fails(2, "", "reproduce", "neusight", "--runs", "runs.csv")

    def test_every_published_row_is_simulated(self):
        self.assertEqual([row for row in self.rows if row["skipped"]], [])
        self.assertGreaterEqual(len(self.rows), 50)
        for row in self.rows:
            self.assertAlmostEqual(row["error_pct"], (row["simulated_ms"] / row["measured_ms"] - 1) * 100, places=6)

    def test_training_on_four_gpus_is_within_7_percent_and_no_row_beyond_12(self):
        rows = [row for row in self.rows if row["n_gpus"] == 4 and row["mode"] == "training"]
        self.assertEqual(len(rows), 6)
        self.assertLessEqual(mean(errors(rows)), 7)
        self.assertLessEqual(max(errors(rows)), 12)

    def test_eager_runs_on_one_gpu_of_the_training_data_are_within_11_percent(self):
        rows = [row for row in self.rows if row["n_gpus"] == 1 and row["gpu"] in SEEN_GPUS and row["mode"] in EAGER]
        self.assertGreaterEqual(len(rows), 30)
        self.assertLessEqual(mean(errors(rows)), 11)


if __name__ == "__main__":
    unittest.main()
