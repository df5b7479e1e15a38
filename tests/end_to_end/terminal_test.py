"""What a person sees on a terminal: its width, its colours, what is explained where."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, PROGRAM, SCENARIOS, EndToEnd

ESCAPE = "\x1b["


class Terminal(EndToEnd):
    def on_terminal(self, *arguments, columns=0, shows_errors=False, **variables):
        """What a command writes to a terminal; one of 0 columns does not say how wide it is."""
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", **variables}
        if "NO_COLOR" not in variables:
            environment.pop("NO_COLOR", None)
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=side,
                                   stderr=side if shows_errors else subprocess.DEVNULL, env=environment)
        os.close(side)
        chunks = []
        try:
            while chunk := os.read(main, 65536):
                chunks.append(chunk)
        except OSError:  # the other end is closed
            pass
        os.close(main)
        self.assertEqual(process.wait(timeout=60), 0)
        return b"".join(chunks).decode().replace("\r\n", "\n")

    def test_one_result_fits_80_columns(self):
        for scenario in sorted(SCENARIOS.glob("gpt2-large_*.yaml")) + [PIPELINE]:
            for notes in ((), ("--notes",)):
                for line in self.answer("simulate", scenario, *notes).splitlines():
                    self.assertLessEqual(len(line), 80, line)

    def assert_narrow(self, *arguments, codes=(0,)):
        result = self.run_tessera(*arguments)
        self.assertIn(result.returncode, codes, result.stderr)
        for line in result.stdout.splitlines():
            self.assertLessEqual(len(line), 80, f"{arguments}: {line}")

    def commands(self, *path):
        names = re.findall(r"(?m)^  ([a-z-]+) ", self.answer(*path, "--help").partition("\nSubcommands:\n")[2])
        return [path] + [below for name in names for below in self.commands(*path, name)]

    def test_every_help_fits_80_columns(self):
        commands = self.commands()
        self.assertGreater(len(commands), 30)
        for command in commands:
            self.assert_narrow(*command, "--help")

    def test_every_kind_of_answer_fits_80_columns(self):
        self.plant("two.yaml", f"name: two\nbase: {DATA_PARALLEL}\naxes:\n  parallelism.tensor: [1, 4]\nderive: {{parallelism.data: 4 / parallelism.tensor}}\n")
        for arguments in (("explain-step", PIPELINE, "--notes"), ("compare", DATA_PARALLEL, PIPELINE, "--notes"), ("fit", "gpt2-large", "hgx-h100-4"),
                          ("list", "gpus", "--long"), ("list", "models", "--long"), ("list", "clusters", "--long"), ("list", "schedules"),
                          ("explain", "training"), ("explain", "H100-SXM5-80GB"), ("topology", "show", "dgx-superpod-h100"),
                          ("plan", "parallelism", "gpt3-xl", "hgx-h100-4", "--global-batch", "16", "--sequence-length", "512"),
                          ("plan", "memory", PIPELINE, "--budget", "20GiB", "--fast"), ("sweep", "two.yaml", "--out", "out"),
                          ("collective", "--cluster", "dgx-h100-x8-rail", "--op", "all_reduce", "--bytes", "1MiB", "--to", "64MiB"),
                          ("explain-kernel", "--gpu", "H100-SXM5-80GB", "--op", "linear", "--m", "4096", "--n", "4096", "--k", "4096"),
                          ("run", DATA_PARALLEL, "--days", "30", "--failures-per-1000-node-days", "6.5"), ("plan", "clocks", PIPELINE),
                          ("plan", "micro-batches", DATA_PARALLEL, "--set", "training.micro_batches=4", "--set", "training.global_batch=16",
                           "--set", "perturbation.gpus=[{replicas: 3, slowdown: 1.5}]"),
                          ("run", DATA_PARALLEL, "--failures", "b200-504", "--policy", "elastic", "--heartbeat", "30s", "--collective-timeout", "10min"),
                          ("simulate", PIPELINE, "--steps", "3"), ("show", "memory", PIPELINE)):
            with self.subTest(arguments):
                self.assert_narrow(*arguments)

    def test_tables_of_measured_rows_fit_a_terminal_and_are_whole_in_a_file(self):
        self.plant("runs.csv", "id,gpu,n_gpus,precision,family,layers,hidden,heads,vocab,seq_len,global_batch,tp,dp,step_time_s\n"
                               "a row of mine,A100-SXM4-80GB,1,bf16,gpt,12,1024,16,50304,1024,8,1,1,0.11\n")
        for command in (("validate", "runs.csv"), ("reproduce", "neusight")):
            with self.subTest(command):
                narrow = self.on_terminal(*command, columns=80).splitlines()
                self.assertLessEqual(max(map(len, narrow)), 80)
                self.assertTrue(any("A100" in line for line in narrow))
                whole = self.answer(*command).splitlines()
                self.assertEqual(self.on_terminal(*command, columns=1000).splitlines(), whole)
                self.assertIn("80 % interval", whole[0])

    def test_a_wide_terminal_gets_wide_lines(self):
        def widest(columns):
            return max(len(line) for line in self.on_terminal("explain", "training", columns=columns).splitlines())
        self.assertLessEqual(widest(60), 60)
        self.assertGreater(widest(120), 80)

    def test_an_unknown_name_gets_the_nearest_or_a_short_list(self):
        error = self.run_tessera("simulate", "nowhere").stderr
        self.assertRegex(error, r"use one of \S+, .* and \d+ more \(tessera list scenarios\)$")
        self.assertLess(len(error), 480)
        self.assertIn("did you mean gpt2-large_4xh100_dp4?", self.run_tessera("simulate", "gpt2-large_4xh100_pd4").stderr)

    def test_colours_and_bars_are_for_terminals_whose_user_wants_them(self):
        plain = self.answer("simulate", DATA_PARALLEL)
        self.assertNotIn(ESCAPE, plain)
        self.assertNotIn("█", plain)
        coloured = self.on_terminal("simulate", DATA_PARALLEL)
        self.assertIn(ESCAPE + "38;2;49;86;187m█", coloured, "forward in the colour of the palette, #3156bb")
        self.assertTrue(all(len(re.sub(r"\x1b\[[\d;]*m", "", line)) <= 80 for line in coloured.splitlines()))
        self.assertEqual(self.on_terminal("simulate", DATA_PARALLEL, NO_COLOR="1"), plain)
        self.assertEqual(self.on_terminal("simulate", DATA_PARALLEL, TERM="dumb"), plain)
        self.assertNotIn(ESCAPE, self.on_terminal("simulate", DATA_PARALLEL, "--format", "json"))

    def test_a_name_cannot_colour_a_terminal(self):
        self.plant("red.yaml", DATA_PARALLEL.read_text().replace("name: ", 'name: "\\e[31mred"  # ', 1))
        main, side = pty.openpty()
        subprocess.run([PROGRAM, "simulate", "red.yaml"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=side, stderr=side, timeout=60, check=False,
                       env={**os.environ, "TERM": "xterm"})
        os.close(side)
        self.assertNotIn(ESCAPE + "31mred", os.read(main, 65536).decode())
        os.close(main)

    def test_a_memory_plan_says_how_many_stages_are_left(self):
        seen = self.on_terminal("plan", "memory", PIPELINE, "--budget", "20GiB", "--fast", columns=100, shows_errors=True)
        self.assertRegex(seen, r"\[#+\.+\] 3/4 stages planned.*, \d+ s left")
        last = seen.rpartition("\r")[2]
        self.assertNotIn("stages planned", last, "the line goes away")

    def test_notes_stand_where_they_are_asked_for(self):
        self.assertNotIn("model FLOPs utilization", self.answer("simulate", DATA_PARALLEL))
        self.assertEqual(self.answer("simulate", DATA_PARALLEL, "--notes").count("model FLOPs utilization"), 1)

    def test_lists_have_figures_for_people_and_ids_for_scripts(self):
        self.assertIn("gpt2-large", self.answer("list", "models").splitlines())
        self.assertRegex(self.answer("list", "models", "--long"), r"(?m)^gpt2-large +0\.774 +- +36 +1280 +20 +50257$")
        self.assertRegex(self.on_terminal("list", "gpus"), r"(?m)^H100-SXM5-80GB +79\.\d+ +3350 ")
        self.assertRegex(self.on_terminal("list", "clusters"), r"(?m)^dgx-superpod-h100 +\d+ +\d+  H100-SXM5-80GB$")

    def test_explain_knows_models_gpus_and_terms(self):
        self.assertIn("774.03 million parameters", self.answer("explain", "gpt2-large"))
        self.assertIn("H100-SXM5-80GB", self.answer("explain", "H100-SXM5-80GB"))
        self.plant("mine.yaml", "extends: L40S\nid: L40S-300W\ntdp: 300 W\n")
        self.assertRegex(self.answer("explain", "mine.yaml"), r"(?s)^GPU L40S-300W\n.*\n  tdp: 300 W\n")
        self.plant("job.yaml", "name: job\nmodel: gpt2\n")
        self.assert_fails(3, "job.yaml: describes no GPU", "explain", "job.yaml")
        self.assertIn("model FLOPs utilization", self.answer("explain", "mfu"))
        self.assertIn("other pipeline stages", " ".join(self.answer("explain", "bubble").split()))
        self.assertIn("training.micro_batch", self.answer("explain", "training.micro_batch"))

    def test_8k_is_8192_tokens_and_of_other_things_refused(self):
        long, written = (self.simulate(PIPELINE, f"training.sequence_length={length}")["tokens_per_s"] for length in ("1k", "1024"))
        self.assertEqual(long, written)
        self.assert_fails(3, "may be 1000 or 1024; write the number out", "simulate", PIPELINE, "--set", "training.global_batch=1k")


if __name__ == "__main__":
    unittest.main()
