"""Sweeps: whole or resumed, in one run or in shards, the same points make the same files."""

import contextlib
import csv
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tessera_command import PROGRAM, ROOT, EndToEnd

SWEEPS = ROOT / "configs/sweeps"

KILLS = 20

SMALL = """base: {model: gpt2, cluster: dgx-h100, training: {sequence_length: 256, global_batch: 16}}
axes:
  parallelism.tensor: [1, 2, 3, 4]
  parallelism.pipeline: {from: 1, to: 4, times: 2}
  training.micro_batch: [1, 2]
derive:
  parallelism.data: 4 / (parallelism.tensor * parallelism.pipeline)
where: parallelism.tensor * parallelism.pipeline <= 4
"""


class Sweep(EndToEnd):
    def sweep(self, *arguments, **options):
        result = self.run_tessera("sweep", *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def rows(self, folder="out"):
        with open(self.folder / folder / "results.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def wait_for_results(self, process):
        """Until a run that goes on writes its first results, however busy the machine is, or ends."""
        log = self.folder / "out/results.sqlite-wal"

        def size():
            with contextlib.suppress(FileNotFoundError):
                return log.stat().st_size
            return 0

        begin = size()
        while size() in (0, begin) and process.poll() is None:
            time.sleep(0.001)

    def stored_points(self, folder):
        """How many results a copy of a store holds: reading must not repair what a killed run left."""
        with tempfile.TemporaryDirectory() as copy:
            for file in (self.folder / folder).glob("results.sqlite*"):
                shutil.copy(file, copy)
            with contextlib.closing(sqlite3.connect(Path(copy) / "results.sqlite")) as database:
                tables = {name for name, in database.execute("SELECT name FROM sqlite_master")}
                return database.execute("SELECT count(*) FROM results").fetchone()[0] if "results" in tables else 0

    def exported(self, folder):
        return (self.folder / folder / "results.csv").read_bytes()

    def test_a_point_answers_as_simulate_does(self):
        self.sweep(self.plant("s.yaml", SMALL), "--out", "out")
        row = next(row for row in self.rows() if (row["parallelism.tensor"], row["parallelism.pipeline"],
                                                   row["training.micro_batch"]) == ("2", "2", "2"))
        scenario = self.plant("one.yaml", "model: gpt2\ncluster: dgx-h100\n"
                              "training: {sequence_length: 256, global_batch: 16, micro_batch: 2}\n"
                              "parallelism: {tensor: 2, pipeline: 2, data: 1}\n")
        answer = self.simulate(scenario)
        self.assertEqual(float(row["step_time_s"]), answer["step_time_s"])
        self.assertEqual(int(row["peak_memory_bytes"]), answer["memory"]["peak_bytes"])
        self.assertEqual(float(row["mfu"]), answer["mfu"])

    def test_points_that_stand_for_another_job_say_so(self):
        out = self.sweep(self.plant("s.yaml", "base: {model: gpt2, cluster: hgx-h100-4, approximations: ['windows, cut'], "
                                    "training: {sequence_length: 256, global_batch: 8}}\n"
                                    "axes: {training.micro_batch: [1, 2]}\n"), "--out", "out")
        self.assertEqual(out.count("approximate: windows, cut\n"), 1)
        self.assertEqual({row["approximate"] for row in self.rows()}, {"windows, cut"})

    def test_invalid_points_are_listed_and_their_reasons_counted(self):
        out = self.sweep(self.plant("s.yaml", SMALL), "--out", "out")
        # 4 / 3 replicas for tensor 3: two micro-batch sizes, one pipeline size that leaves 3 <= 4.
        self.assertIn("2 invalid", out)
        self.assertRegex(out, r"(?m)^ +2  parallelism\.data = N is no whole number$")
        invalid = [row for row in self.rows() if row["outcome"] == "invalid"]
        self.assertEqual({row["parallelism.tensor"] for row in invalid}, {"3"})
        self.assertEqual({row["step_time_s"] for row in invalid}, {""})

    def test_rows_stand_in_the_order_of_the_grid_whatever_the_jobs(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "one", "--jobs", "1")
        self.sweep(sweep, "--out", "four", "--jobs", "4")
        self.assertEqual(self.exported("one"), self.exported("four"))
        numbers = [int(row["point"]) for row in self.rows("one")]
        self.assertEqual(numbers, sorted(numbers))

    def test_killed_at_random_moments_and_resumed_it_ends_as_if_never_killed(self):
        sweep = self.plant("s.yaml", SMALL.replace("[1, 2]\n", "[1, 2, 4, 8]\n"
                                                   "  training.sequence_length: {from: 128, to: 1024, step: 128}\n"))
        self.sweep(sweep, "--out", "whole")
        moments = random.Random(7)
        kills, stored = 0, []
        for attempt in range(400):
            process = subprocess.Popen([PROGRAM, "sweep", sweep, "--out", "out", "--resume"], cwd=self.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if attempt % 3 > 0:  # else at its start
                self.wait_for_results(process)
            time.sleep(moments.uniform(0, 0.1))
            if process.poll() is None and kills < KILLS:
                process.send_signal(signal.SIGKILL)
                kills += 1
            code = process.wait()
            stored.append(self.stored_points("out"))
            if code == 0:
                break
        self.assertEqual(stored, sorted(stored), "what was stored stays")
        self.assertGreater(len(set(stored)), 3, "killed between points")
        self.assertGreaterEqual(kills, min(KILLS, 10), "killed at too few moments")
        self.assertEqual(self.exported("out"), self.exported("whole"))

    def test_what_is_stored_is_not_simulated_again(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "out", "--limit", "3")
        again = self.sweep(sweep, "--out", "out", "--resume")
        self.assertRegex(again, r"\b3 read from the store")
        self.assertRegex(self.sweep(sweep, "--out", "out", "--resume"), r"^14 points: 12 read from the store, 2 invalid")
        # A longer sweep finds what the shorter one has computed.
        self.plant("s.yaml", SMALL.replace("[1, 2]\n", "[1, 2, 4]\n"))
        self.assertRegex(self.sweep(sweep, "--out", "out", "--resume"), r"\b12 read from the store")

    def test_results_are_not_written_over_unasked(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "out", "--limit", "1")
        self.assert_fails(3, "holds results already; go on with --resume", "sweep", sweep, "--out", "out")

    def test_shards_merge_to_the_whole_and_merging_again_changes_nothing(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "whole")
        for shard in ("1/3", "2/3", "3/3"):
            self.sweep(sweep, "--out", "out", "--shard", shard)
        for _ in range(2):
            self.sweep("merge", "out")
            self.assertEqual(self.exported("out"), self.exported("whole"))

    def test_shards_that_write_at_once_make_the_whole(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "whole")
        shards = [subprocess.Popen([PROGRAM, "sweep", sweep, "--out", "out", "--shard", f"{i}/3"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for i in (1, 2, 3)]
        for shard in shards:
            _, errors = shard.communicate(timeout=100)
            self.assertEqual(shard.returncode, 0, errors)
        self.sweep("merge", "out")
        self.assertEqual(self.exported("out"), self.exported("whole"))

    def test_merging_waits_for_no_shard_and_takes_up_late_ones(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "whole")
        self.sweep(sweep, "--out", "out", "--shard", "2/2")
        self.sweep("merge", "out")
        self.assertEqual(len(self.rows("out")), 7)
        self.sweep(sweep, "--out", "out", "--shard", "1/2")
        self.sweep("merge", "out")
        self.assertEqual(self.exported("out"), self.exported("whole"))

    def test_shards_of_different_sweeps_do_not_mix(self):
        sweep = self.plant("s.yaml", SMALL)
        self.sweep(sweep, "--out", "out", "--shard", "1/2")
        self.plant("s.yaml", SMALL.replace("256", "128"))
        self.sweep(sweep, "--out", "out", "--shard", "2/2")
        self.assert_fails(3, "belongs to another sweep", "sweep", "merge", "out")

    def test_json_lines_hold_what_the_table_holds(self):
        self.sweep(self.plant("s.yaml", SMALL), "--out", "out", "--format", "jsonl")
        lines = [json.loads(line) for line in (self.folder / "out/results.jsonl").read_text().splitlines()]
        self.sweep("--resume", "s.yaml", "--out", "out")
        for line, row in zip(lines, self.rows(), strict=True):
            self.assertEqual(line["point"], int(row["point"]))
            if row["outcome"] == "ok":
                self.assertEqual(line["step_time_s"], float(row["step_time_s"]))

    def test_a_sample_is_the_same_for_the_same_seed_and_spreads_over_every_axis(self):
        sweep = self.plant("s.yaml", "base: {model: gpt2, cluster: dgx-h100, training: {global_batch: 1}}\n"
                           "axes: {training.sequence_length: {from: 1, to: 60, step: 1}, model.layers: "
                           "{from: 1, to: 12, step: 1}}\n")
        chosen = []
        for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
            self.sweep(sweep, "--out", folder, "--sample", "12", "--seed", str(seed))
            chosen.append([row["point"] for row in self.rows(folder)])
        self.assertEqual(chosen[0], chosen[1])
        self.assertNotEqual(chosen[0], chosen[2])
        # Twelve strata of either axis, each once.
        rows = self.rows("a")
        self.assertEqual({row["model.layers"] for row in rows}, {str(i) for i in range(1, 13)})
        strata = sorted((int(row["training.sequence_length"]) - 1) * 12 // 60 for row in rows)
        self.assertEqual(len(set(strata)), 12)

    def test_a_dry_run_counts_and_writes_nothing(self):
        out = self.sweep(self.plant("s.yaml", SMALL), "--dry-run")
        self.assertIn("12 to simulate", out)
        self.assertEqual(self.files(), ["s.yaml"])

    def test_a_point_over_its_time_limit_is_listed_and_tried_again_with_a_longer_one(self):
        sweep = self.plant("s.yaml", "base: {model: gpt2, cluster: dgx-h100, training: {sequence_length: 256}}\n"
                           "axes: {training.global_batch: [4, 8]}\n")
        self.assertIn("2 over the time limit", self.sweep(sweep, "--out", "out", "--time-limit", "1 us"))
        self.assertEqual([row["outcome"] for row in self.rows()], ["timeout", "timeout"])
        self.assertIn("2 read from the store", self.sweep(sweep, "--out", "out", "--time-limit", "1 us", "--resume"))
        self.assertIn("2 simulated", self.sweep(sweep, "--out", "out", "--resume"))

    def test_settings_of_collectives_are_axes(self):
        base = ROOT / "configs/scenarios/gpt3-xl_4xh100_pp4_1f1b.yaml"
        sweep = self.plant("s.yaml", f"base: {base}\naxes: {{collectives.nccl_messages: [true, false]}}\n")
        self.assertIn("2 simulated", self.sweep(sweep, "--out", "out"))
        alone = [self.simulate(base, f"collectives.nccl_messages={value}")["step_time_s"] for value in ("true", "false")]
        self.assertNotEqual(alone[0], alone[1])
        self.assertEqual([float(row["step_time_s"]) for row in self.rows()], alone)

    def test_hardware_and_models_are_axes(self):
        self.plant("wide.yaml", "extends: gpt2\nlayers: 6\nname: half\n")
        sweep = self.plant("s.yaml", "base: {training: {sequence_length: 128, global_batch: 4}}\n"
                           "axes: {model: [gpt2, ./wide.yaml], cluster: [dgx-h100, dgx-a100, l4-pcie-8]}\n"
                           "where: cluster.node.gpu.memory >= 30 GiB\n"
                           "exclude: [{model: gpt2, cluster: [dgx-a100]}]\n")
        self.assertIn("2 left out by where", self.sweep(sweep, "--out", "out"))
        self.assertEqual([(row["model"], row["cluster"]) for row in self.rows()],
                         [("gpt2", "dgx-h100"), ("./wide.yaml", "dgx-h100"), ("./wide.yaml", "dgx-a100")])
        times = [float(row["step_time_s"]) for row in self.rows()]
        self.assertLess(times[1], times[0])
        self.assertLess(times[1], times[2])


PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


def obey_modes():
    """Root obeys the modes of files, too. It stays root: a checkout in its home is closed to others."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "cannot drop a capability")


MAY_MOUNT = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0 \
    if shutil.which("unshare") else False


class SweepTrouble(EndToEnd):
    """What can be wrong around a sweep: a clear error, and nothing that was stored is lost."""

    def stored(self):
        self.sweep_file = self.plant("s.yaml", SMALL)
        result = self.run_tessera("sweep", self.sweep_file, "--out", "out", "--limit", "4")
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.folder / "out/results.sqlite"

    def test_a_damaged_store_is_named(self):
        store = self.stored()
        content = bytearray(store.read_bytes())
        content[4096:8192] = b"\xAB" * 4096
        store.write_bytes(content)
        self.assert_fails(3, "results.sqlite: ", "sweep", self.sweep_file, "--out", "out", "--resume")
        self.assertEqual(store.read_bytes()[4096:4100], b"\xAB" * 4)

    def test_a_file_that_is_no_store_is_left_alone(self):
        self.plant("out/results.sqlite", "my diary\n" * 200)
        self.plant("s.yaml", SMALL)
        self.assert_fails(3, "file is not a database", "sweep", "s.yaml", "--out", "out", "--resume")
        self.assertTrue((self.folder / "out/results.sqlite").read_text().startswith("my diary"))

    @unittest.skipIf(os.geteuid() == 0 and not os.path.exists("/proc/self/status"), "needs /proc")
    def test_a_folder_that_cannot_be_made_is_named(self):
        self.plant("s.yaml", SMALL)
        self.assert_fails(3, "cannot be made", "sweep", "s.yaml", "--out", "/proc/sweep")
        self.plant("file", "")
        self.assert_fails(3, "cannot be made", "sweep", "s.yaml", "--out", "file/out")

    def test_a_read_only_folder_is_named(self):
        self.plant("s.yaml", SMALL)
        (self.folder / "out").mkdir(mode=0o555)
        self.folder.chmod(0o755)

        self.assert_fails(3, "cannot be used as a store", "sweep", "s.yaml", "--out", "out", preexec_fn=obey_modes)
        self.assertEqual(list((self.folder / "out").iterdir()), [])

    def test_a_folder_without_search_right_is_named(self):
        self.plant("s.yaml", SMALL)
        (self.folder / "out").mkdir(mode=0o600)
        self.assert_fails(3, "out/results.sqlite: cannot be used as a store", "sweep", "s.yaml", "--out", "out",
                          preexec_fn=obey_modes)
        self.assert_fails(3, "out/r.json: cannot be written: Permission denied", "simulate",
                          ROOT / "configs/scenarios/gpt2-large_4xh100_dp4.yaml", "--trace", "out/r.json",
                          preexec_fn=obey_modes)

    @unittest.skipUnless(MAY_MOUNT, "needs a mount namespace of its own (root)")
    def test_a_file_system_without_space_ends_the_run_and_keeps_what_is_stored(self):
        store = self.stored()
        room = store.stat().st_size + 8 * 4096
        script = ("mkdir disk && mount -t tmpfs -o size=$0 tmpfs disk && cp out/* disk && "
                  "$1 sweep s.yaml --out disk --resume; code=$?; cp disk/results.sqlite out && exit $code")
        full = subprocess.run(["unshare", "--mount", "bash", "-c", script, str(room), str(PROGRAM)], cwd=self.folder,
                              capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(full.returncode, 3, full.stderr)
        self.assertIn("cannot be used as a store", full.stderr)
        again = self.run_tessera("sweep", self.sweep_file, "--out", "out", "--resume")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex(again.stdout, r"\b([4-9]|1[0-2]) read from the store")

    def test_a_full_disk_ends_the_run_and_keeps_what_is_stored(self):
        store = self.stored()

        def small_files_only():
            resource.setrlimit(resource.RLIMIT_FSIZE, (store.stat().st_size + 3 * 4096,) * 2)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        result = self.run_tessera("sweep", self.sweep_file, "--out", "out", "--resume",
                                  preexec_fn=small_files_only, restore_signals=False)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("cannot be used as a store", result.stderr)
        again = self.run_tessera("sweep", self.sweep_file, "--out", "out", "--resume")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex(again.stdout, r"\b([4-9]|1[0-2]) read from the store")

    def test_two_runs_cannot_write_one_store_at_once(self):
        self.plant("long.yaml", SMALL.replace("[1, 2]\n", "{from: 1, to: 16, times: 2}\n").replace("256", "1024"))
        first = subprocess.Popen([PROGRAM, "sweep", "long.yaml", "--out", "out"], cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        # From the first rows on the store is taken; before that it is not there.
        for _ in range(500):
            if (self.folder / "out/results.sqlite-wal").exists():
                break
            time.sleep(0.01)
        first.send_signal(signal.SIGSTOP)
        self.assert_fails(3, "another process has it open", "sweep", "long.yaml", "--out", "out", "--resume")
        first.send_signal(signal.SIGCONT)
        self.assertEqual(first.wait(), 0)

    def test_mistakes_in_the_file_are_told_with_their_places(self):
        for text, message in (
                ("base: nowhere\naxes: {training.micro_batch: [1]}\n", "s.yaml:1:7: base = nowhere is not in"),
                ("base: gpt2-large_4xh100_dp4\naxes: {training.microbatch: [1]}\n", "s.yaml:2:8: no field microbatch"),
                ("base: gpt2-large_4xh100_dp4\naxes: {training.micro_batch: {from: 1, to: 8}}\n", "needs either step or times"),
                ("base: gpt2-large_4xh100_dp4\naxes: {training.micro_batch: []}\n", "training.micro_batch has no values"),
                ("base: gpt2-large_4xh100_dp4\naxes: {training.micro_batch: [1], training.micro_batch_size: [2]}\n",
                 "is given twice"),
                ("base: gpt2-large_4xh100_dp4\naxes: {model: [gpt2], model.layers: [2]}\n", "model.layers overlaps with model"),
                ("base: gpt2-large_4xh100_dp4\nzip: [{model: [gpt2], training.micro_batch: [1, 2]}]\n", "has 2 values, model has 1"),
                ("base: gpt2-large_4xh100_dp4\naxes: {training.micro_batch: [1]}\nwhere: training.micro_batch >\n",
                 "s.yaml:3:8: \"training.micro_batch >\": a number, a text in quotes or a field was expected"),
                ("base: gpt2-large_4xh100_dp4\naxes: {training.micro_batch: [1]}\nwhere: schedule == 1\n", "no field schedule"),
                ("base: gpt2-large_4xh100_dp4\naxis: {training.micro_batch: [1]}\n", "unknown key axis; did you mean axes?"),
                ("base: gpt2-large_4xh100_dp4\n", "varies nothing"),
                ("- 1\n", "is no sweep")):
            self.plant("s.yaml", text)
            self.assert_fails(3, message, "sweep", "s.yaml", "--dry-run")

    def test_options_that_make_no_sense_are_refused(self):
        self.plant("s.yaml", SMALL)
        for arguments, message in ((["--shard", "5/4"], "write i/n"), (["--shard", "1"], "write i/n"),
                                   (["--time-limit", "soon"], "--time-limit"), ([], "--out: is missing")):
            self.assert_fails(3, message, "sweep", "s.yaml", *arguments, *(["--out", "out"] if arguments else []))
        self.assert_fails(3, "holds no store of a shard", "sweep", "merge", ".")
        self.assert_fails(3, "cannot be read", "sweep", "merge", "nowhere")


class ShippedSweeps(EndToEnd):
    def test_every_shipped_sweep_has_valid_points(self):
        sweeps = sorted(SWEEPS.glob("*.yaml"))
        self.assertTrue(sweeps)
        for sweep in sweeps:
            with self.subTest(sweep.name):
                result = self.run_tessera("sweep", sweep, "--dry-run")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, r"(?m)^[1-9]\d* to simulate$")


if __name__ == "__main__":
    unittest.main()
