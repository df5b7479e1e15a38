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
