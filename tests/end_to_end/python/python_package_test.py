"""The Python package answers as the program does, and turns its exit codes into exceptions."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import unittest
import warnings
from unittest import mock

from tessera_command import DATA_PARALLEL, PROGRAM, ROOT, EndToEnd

sys.path.insert(0, str(ROOT / "tools/python"))
os.environ["TESSERA"] = str(PROGRAM)
import tessera  # noqa: E402, found through the lines above

SMALL = {"model": "gpt2", "cluster": "dgx-h100", "training": {"sequence_length": 256, "global_batch": 8}}


class Simulate(EndToEnd):
    def test_a_step_is_the_json_answer_with_attributes(self):
        step = tessera.simulate(DATA_PARALLEL, set={"training.clip_gradients": False})
        self.assertEqual(step.data, self.simulate(DATA_PARALLEL, "training.clip_gradients=false"))
        self.assertEqual(step.memory.per_rank[0].rank, 0)
        self.assertEqual(step.breakdown["forward"].seconds, step.data["breakdown"]["forward"]["seconds"])
        self.assertIn("step_time_s", dir(step))
        with self.assertRaisesRegex(AttributeError, "has no 'step_time'.*step_time_s"):
            step.step_time

    def test_a_dict_is_a_scenario(self):
        scenario = self.plant("small.yaml", json.dumps(SMALL))
        step = tessera.simulate(SMALL, set={"parallelism": {"tensor": 2}})
        self.assertEqual(step.step_time_s, self.simulate(scenario, "parallelism.tensor=2")["step_time_s"])

    def test_a_step_that_does_not_fit_is_an_answer(self):
        step = tessera.simulate(DATA_PARALLEL, set={"training.global_batch": 400})
        self.assertFalse(step.fits)
        self.assertIn("does not fit", step._repr_html_())

    def test_files_are_written(self):
        tessera.simulate(SMALL, picture=self.folder / "step.svg", report=self.folder / "step.html")
        self.assertEqual(self.files(), ["step.html", "step.svg"])

    def test_names_are_escaped_in_html(self):
        page = tessera.simulate(SMALL, set={"name": "<script>alert(1)</script>"})._repr_html_()
        self.assertIn("&lt;script&gt;", page)
        self.assertNotIn("<script", page)


class Commands(EndToEnd):
    def test_a_sweep_is_a_list_of_dicts(self):
        rows = tessera.sweep({"base": SMALL, "axes": {"parallelism.tensor": [1, 2, 5], "training.precision": ["fp32"]}})
        self.assertEqual([row["parallelism.tensor"] for row in rows], [1, 2, 5])
        self.assertEqual([row["outcome"] for row in rows], ["ok", "ok", "invalid"])
        self.assertEqual(rows[0]["step_time_s"], tessera.simulate(SMALL, set={"training.precision": "fp32"}).step_time_s)
        fastest = max(rows[:2], key=lambda row: row["tokens_per_s_per_gpu"])
        self.assertEqual(rows.best(count=1), [fastest])
        self.assertEqual(rows._repr_html_().count("<tr>"), 4)

    def test_a_sweep_with_a_folder_is_resumed(self):
        spec = {"base": str(DATA_PARALLEL), "axes": {"parallelism.tensor": [1, 2]}, "derive":
                {"parallelism.data": "4 / parallelism.tensor"}}
        first = tessera.sweep(spec, out=self.folder / "out", limit=1)
        self.assertEqual(tessera.sweep(spec, out=self.folder / "out", resume=True)[0], first[0])

    def test_to_frame_hands_the_rows_to_pandas(self):
        rows = tessera.Table([{"a": 1}, {"a": 2}])
        with mock.patch.dict(sys.modules, {"pandas": mock.Mock(DataFrame=lambda data: ("frame", data))}):
            self.assertEqual(rows.to_frame(), ("frame", [{"a": 1}, {"a": 2}]))
        with mock.patch.dict(sys.modules, {"pandas": None}), self.assertRaises(ImportError):
            rows.to_frame()

    def test_a_memory_plan_holds_the_budget(self):
        plan = tessera.plan_memory(DATA_PARALLEL, budget=16 * 2**30, planner="megatron_block")
        self.assertEqual(plan.budget_bytes, 16 * 2**30)
        self.assertLessEqual(plan.stages[0].planned_peak_bytes, plan.budget_bytes)
        self.assertGreater(plan.simulated_step_s, plan.base_step_s)
        impossible = tessera.plan_memory(DATA_PARALLEL, budget="1GiB", swap=False)
        self.assertFalse(impossible.feasible)
        self.assertIn("infeasible", impossible._repr_html_())

    def test_steps_and_scenarios_are_compared(self):
        step = tessera.simulate(SMALL)
        same = tessera.compare(step, SMALL)
        self.assertEqual(same.difference_pct, 0)
        slower = tessera.compare(SMALL, SMALL, set_b={"training.recompute": "full"})
        self.assertGreater(slower.difference_pct, 0)
        self.assertIn("recompute", slower._repr_html_())

    def test_any_command_answers_in_json(self):
        times = tessera.ask("collective", "--cluster", "dgx-h100", "--op", "all_reduce", "--bytes", "1GiB")
        self.assertTrue(times)


class Errors(EndToEnd):
    def test_bad_input_lists_every_problem(self):
        with self.assertRaises(tessera.InputError) as caught:
            tessera.simulate(DATA_PARALLEL, set={"parallelism.tensr": 1, "training.global_batch": 0})
        self.assertEqual(caught.exception.exit_code, 3)
        self.assertEqual(len(caught.exception.problems), 2)
        self.assertIn("parallelism.tensr", str(caught.exception))

    def test_exit_codes_have_classes(self):
        with self.assertRaises(tessera.UsageError) as caught:
            tessera.run("simulate", "--no-such-option")
        self.assertEqual(caught.exception.exit_code, 2)
        with self.assertRaises(tessera.OutOfTime):
            tessera.simulate(ROOT / "configs/scenarios/gpt3-175b_1024xh100_tp8_pp8_dp16.yaml",
                             set={"simulation.time_limit": "1ms"})

    def test_what_cannot_be_run_is_named(self):
        with mock.patch.dict(os.environ, {"TESSERA": "/no/such/program"}):
            with self.assertRaisesRegex(tessera.ProgramNotFound, "/no/such/program"):
                tessera.simulate(SMALL)

    def test_warnings_of_the_program_are_warnings(self):
        infeasible = {"memory.planner": "tessera", "memory.budget": "1GiB"}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tessera.simulate(DATA_PARALLEL, set=infeasible)
        self.assertIn("no memory plan", str(caught[0].message))


class Documentation(EndToEnd):
    def test_the_example_runs(self):
        example = re.search(r"(?ms)^```python\n(.*?)^```$", (ROOT / "docs/python.md").read_text()).group(1)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}
        result = subprocess.run([sys.executable, "-B", "-W", "error", "-c", example], cwd=ROOT, env=environment,
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(result.stdout.splitlines()), 6)


class Packaging(EndToEnd):
    @unittest.skipUnless(importlib.util.find_spec("setuptools"), "setuptools is not installed")
    def test_every_module_is_packaged(self):
        for file in (ROOT / "tools/python").glob("**/*"):
            if file.suffix in (".py", ".toml"):
                self.plant(file.relative_to(ROOT / "tools/python"), file.read_text())
        subprocess.run([sys.executable, "-c", "import setuptools; setuptools.setup()", "-q", "build_py", "-d", "built"],
                       cwd=self.folder, check=True, capture_output=True)
        modules = {path.relative_to(self.folder) for path in (self.folder / "tessera").rglob("*.py")}
        built = self.folder / "built"
        self.assertEqual({path.relative_to(built) for path in (built / "tessera").rglob("*.py")}, modules)

    def test_version_is_that_of_the_project(self):
        project = (ROOT / "tools/python/pyproject.toml").read_text()
        self.assertIn(f'version = "{self.answer("--version").strip()}"', project)


if __name__ == "__main__":
    unittest.main()
