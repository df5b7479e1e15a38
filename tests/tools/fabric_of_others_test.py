"""tools/fabric_of_others takes nothing from a row's own model."""

import csv
import io
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools/fabric_of_others"
ROWS = """id,model,n_gpus,pp_fix,all_reduce_GBps,all_gather_GBps,step_time_s
a,small,64,0,200,180,1
b,large,64,0,100,90,2
c,large,64,0,140,,3
d,large,64,0,150,110,3
e,large,128,0,10,9,4
f,large,64,1,20,18,5
g,large,32,0,1,1,6
"""


class FabricOfOthers(unittest.TestCase):
    def rows(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.csv"
            file.write_text(ROWS)
            result = subprocess.run([TOOL, file, *options], capture_output=True, text=True, check=True)
        return {row["id"]: row for row in csv.DictReader(io.StringIO(result.stdout))}

    def test_a_row_has_the_median_of_other_models_on_as_many_gpus_in_the_same_month(self):
        rows = self.rows()
        self.assertEqual(rows["a"]["all_reduce_GBps"], "140.00")  # of 100, 140, 150
        self.assertEqual(rows["a"]["all_gather_GBps"], "100.00")  # of 90, 110
        self.assertEqual(rows["b"]["all_reduce_GBps"], "200.00")
        self.assertEqual(rows["c"]["all_gather_GBps"], "180.00")

    def test_where_nobody_else_ran_nothing_was_measured(self):
        for name in "efg":
            self.assertEqual(self.rows()[name]["all_reduce_GBps"], "")

    def test_other_columns_stay(self):
        self.assertEqual([row["step_time_s"] for row in self.rows().values()], list("1233456"))

    def test_nothing_measured_leaves_the_bandwidths_out(self):
        self.assertEqual({row["all_reduce_GBps"] + row["all_gather_GBps"] for row in self.rows("--nothing-measured").values()}, {""})

    def test_without_a_file_it_says_what_it_takes(self):
        result = subprocess.run([TOOL], capture_output=True, text=True, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("Usage: tools/fabric_of_others", result.stderr)


if __name__ == "__main__":
    unittest.main()
