"""Every command, fed with what no user should feed it: a named refusal in bounded time, no bug, nothing left behind."""

import contextlib
import gzip
import json
import os
import resource
import signal
import subprocess
import time
import unittest

from tessera_command import DATA_PARALLEL, PROGRAM, EndToEnd

BAD_INPUT = 3

# @ stands for the file. All of them read it ahead of anything that takes long.
READERS = {
    "check": ["check", "@"],
    "simulate": ["simulate", "@"],
    "show": ["show", "scenario", "@"],
    "explain-step": ["explain-step", "@"],
    "a model": ["check", DATA_PARALLEL, "--set", "model=@"],
    "a cluster": ["check", DATA_PARALLEL, "--set", "cluster=@"],
    "compare": ["compare", "@", "@"],
    "predict": ["predict", "--kernels", "@"],
    "weights": ["predict", "--kernels", "@", "--weights", "@"],
    "runs": ["validate", "@"],
    "models": ["validate", "--models", "@"],
    "operators": ["validate", "--operators", "@"],
    "collectives": ["validate", "--collectives", "@"],
    "plan graph": ["plan", "graph", "@"],
    "plan memory": ["plan", "memory", "@"],
    "plan parallelism": ["plan", "parallelism", "@", "dgx-h100", "--global-batch", "8"],
    "sweep": ["sweep", "@", "--dry-run"],
    "nccl logs": ["calibrate", "nccl", "@", "--cluster", "dgx-h100", "--out", "out.yaml"],
    "measured kernels": ["calibrate", "gpu", "--gpu", "H100-SXM5-80GB", "--from-kernels", "@", "--out", "out.yaml"],
    "measured steps": ["calibrate", "gpu", "--gpu", "H100-SXM5-80GB", "--from-steps", "@", "--out", "out.yaml"],
    "run": ["run", "@", "--failures-per-1000-node-days", "1"],
    "failures": ["run", DATA_PARALLEL, "--failures", "@"],
    "faults": ["run", DATA_PARALLEL, "--fault-trace", "@"],
    "topology": ["topology", "show", "@"],
    **{f"import {kind}": ["import", kind, "@"] for kind in (
        "nccl-topology", "nvidia-smi", "simgrid", "megatron", "deepspeed", "accelerate", "huggingface")},
}


def limited(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


class HostileFiles(EndToEnd):
    def refuses(self, name):
        """Every command refuses the file with exit code 3 and names it or the field that it stands for."""
        for reader, arguments in READERS.items():
            with self.subTest(reader, file=name):
                command = [str(word).replace("@", name) for word in arguments]
                result = self.run_tessera(*command, preexec_fn=limited(resource.RLIMIT_AS, 4 << 30))
                self.assertEqual((result.returncode, result.stdout), (BAD_INPUT, ""), result.stderr)
                self.assertIn(name, result.stderr)
                self.assertLess(len(result.stderr), 10000)
                self.assertFalse([c for c in result.stderr if ord(c) < 32 and c != "\n"], result.stderr)

    def test_devices_pipes_and_folders(self):
        os.mkfifo(self.folder / "pipe")
        (self.folder / "folder").mkdir()
        for name in ("/dev/zero", "pipe"):
            self.refuses(name)

    def test_a_file_that_cannot_be_read(self):
        self.refuses("/proc/self/mem")

    def test_binary_data(self):
        (self.folder / "binary").write_bytes(bytes(range(256)) * 40)
        self.refuses("binary")

    def test_brackets_without_end(self):
        self.plant("deep", "[" * 200000)
        self.refuses("deep")

    def test_a_small_file_that_decompresses_to_a_large_one(self):
        with gzip.open(self.folder / "bomb.gz", "wb") as file:
            for _ in range(200):
                file.write(b" " * (1 << 20))
        start = time.monotonic()
        (self.folder / "job.0.et").symlink_to("bomb.gz")
        for name, command in (("bomb.gz", ["compare", "bomb.gz", "bomb.gz"]),
                              ("job.0.et", ["replay", "job", "--cluster", "dgx-h100"])):
            self.assert_fails(BAD_INPUT, f"{name}: decompresses to more than 200 times its size", *command)
        self.assertLess(time.monotonic() - start, 60)

    def test_a_torus_of_many_dimensions(self):
        dimensions = "x".join(["1"] * 100000)
        cluster = self.plant("c.yaml", "extends: dgx-h100\nid: c\nfabric: {kind: torus, link_bandwidth: 10 GB/s, "
                             f"dimensions: {dimensions}}}\n")
        self.assert_fails(BAD_INPUT, "fabric.dimensions gives 100000 sizes", "topology", "show", cluster)


class HostileNames(EndToEnd):
    def test_control_characters_in_a_scenario_are_refused(self):
        for name in ("\\e[2J", "\\x07", "\\u009b31m", "\\u202e"):
            scenario = self.plant("s.yaml", f'extends: {DATA_PARALLEL}\nname: "a{name}"\n')
            self.assert_fails(BAD_INPUT, "s.yaml:2:7: holds a control character", "simulate", scenario)
        scenario = self.plant("s.yaml", f'extends: {DATA_PARALLEL}\nname: "a\\nmfu 99 %"\n')
        self.assert_fails(BAD_INPUT, "holds a line break", "simulate", scenario)

    def test_control_characters_of_other_files_are_shown_and_not_obeyed(self):
        config = {"model_type": "gpt2\u001b[31m\u009b", "n_layer": 2}
        self.plant("config.json", json.dumps(config, ensure_ascii=False).replace("\x1b", "\\u001b"))
        result = self.run_tessera("import", "huggingface", "config.json")
        self.assertEqual(result.returncode, BAD_INPUT)
        self.assertNotRegex(result.stderr, "[\x1b\x9b]")
        self.assertIn("\\u001b[31m\\u009b", result.stderr)

    def test_control_characters_of_the_command_line_are_shown_and_not_obeyed(self):
        for code, arguments in ((2, ["list", "\x1b[31m"]), (3, ["plan", "memory", DATA_PARALLEL, "--budget", "\x1b[31m"]),
                                (3, ["simulate", "\x1b[31m.yaml"])):
            self.assert_fails(code, "\\u001b[31m", *arguments)

    def test_what_a_spreadsheet_would_run_is_text(self):
        self.plant("=cmd.yaml", "extends: gpt2\n")
        self.plant("s.yaml", "base: {cluster: dgx-h100, training: {sequence_length: 64, global_batch: 8}}\n"
                   "axes: {model: ['=cmd.yaml']}\n")
        result = self.run_tessera("sweep", "s.yaml", "--out", "out")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\n0,'=cmd.yaml,", (self.folder / "out/results.csv").read_text())


class TooLittle(EndToEnd):
    def run_limited(self, kind, value):
        return self.run_tessera("simulate", DATA_PARALLEL, preexec_fn=limited(kind, value))

    def test_too_few_open_files(self):
        for count in range(3, 12):
            result = self.run_limited(resource.RLIMIT_NOFILE, count)
            self.assertIn(result.returncode, (0, BAD_INPUT, 127), (count, result.stderr))  # 127: no shared library
            if result.returncode == BAD_INPUT:
                self.assertRegex(result.stderr, "Too many open files|cannot be")

    def test_too_little_memory(self):
        """Below what the loader and the constructors of libraries take, nothing of ours runs; from there on it is said."""
        def code_with(mib):
            result = self.run_limited(resource.RLIMIT_AS, mib << 20)
            if result.returncode == BAD_INPUT:
                self.assertRegex(result.stderr, "memory")
            return result.returncode

        enough = next(mib for mib in range(10, 4000, 10) if code_with(mib) == 0)
        codes = [code_with(mib) for mib in range(enough, enough - 12, -1)]
        self.assertIn(BAD_INPUT, codes)
        told = codes[:len(codes) - codes[::-1].index(BAD_INPUT)]
        self.assertLessEqual(set(told), {0, BAD_INPUT}, codes)


class Signals(EndToEnd):
    def test_no_temporary_file_stays_behind(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                # Hit while the temporary file is there, or a little later.
                process = subprocess.Popen(
                    [PROGRAM, "simulate", DATA_PARALLEL, "--trace", "trace.json"], cwd=self.folder,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.addCleanup(process.wait)
                while not any(".tmp" in name for name in self.files()) and process.poll() is None:
                    pass
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
                code = process.wait()
                self.assertIn(code, (0, 128 + number))
                self.assertFalse([name for name in self.files() if ".tmp" in name])


if __name__ == "__main__":
    unittest.main()
