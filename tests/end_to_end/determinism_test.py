"""Equal inputs give equal bytes."""

import json
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, EndToEnd

OUTPUTS = {"--trace": "trace.json.gz", "--picture": "picture.svg", "--resolved": "resolved.yaml"}


class Determinism(EndToEnd):
    def run_into(self, name, scenario):
        """All that a run writes, by file name."""
        folder = self.folder / name
        folder.mkdir()
        options = [part for option, file in OUTPUTS.items() for part in (option, folder / file)]
        answer = self.answer("simulate", scenario, "--format", "json", *options)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.assertEqual(set(files), set(OUTPUTS.values()))
        return {"stdout": answer.encode(), **files}

    def test_two_runs_write_the_same_bytes(self):
        for scenario in (DATA_PARALLEL, PIPELINE):
            first = self.run_into(f"{scenario.stem}_1", scenario)
            second = self.run_into(f"{scenario.stem}_2", scenario)
            for name, contents in first.items():
                self.assertTrue(contents == second[name], f"{scenario.stem}: {name}")

    def test_reproduction_does_not_depend_on_which_process_ends_first(self):
        first = self.answer("reproduce", "neusight", "--format", "json")
        self.assertEqual(first, self.answer("reproduce", "neusight", "--format", "json"))

    def test_timing_adds_the_times_of_the_run_and_nothing_else(self):
        timed = json.loads(self.answer("simulate", DATA_PARALLEL, "--format", "json", "--timing"))
        times = timed.pop("timing_s")
        self.assertEqual(list(times), ["read", "plan", "simulate", "report"])
        self.assertTrue(all(time >= 0 for time in times.values()))
        self.assertEqual(timed, self.simulate(DATA_PARALLEL))


if __name__ == "__main__":
    unittest.main()
