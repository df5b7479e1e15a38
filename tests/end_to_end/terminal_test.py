"""What a person sees on a terminal: its width, its colours, what is explained where."""

import os
import pty
import re
import subprocess
import unittest

from tessera_command import DATA_PARALLEL, PIPELINE, PROGRAM, SCENARIOS, EndToEnd

ESCAPE = "\x1b["


class Terminal(EndToEnd):
    def on_terminal(self, *arguments, **variables):
        """What a command writes to a terminal."""
        main, side = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", **variables}
        if "NO_COLOR" not in variables:
            environment.pop("NO_COLOR", None)
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=side,
                                   stderr=subprocess.DEVNULL, env=environment)
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
        self.assertIn("model FLOPs utilization", self.answer("explain", "mfu"))
        self.assertIn("other pipeline stages", " ".join(self.answer("explain", "bubble").split()))
        self.assertIn("training.micro_batch", self.answer("explain", "training.micro_batch"))

    def test_8k_is_8192_tokens_and_of_other_things_refused(self):
        long, written = (self.simulate(PIPELINE, f"training.sequence_length={length}")["tokens_per_s"] for length in ("1k", "1024"))
        self.assertEqual(long, written)
        self.assert_fails(3, "may be 1000 or 1024; write the number out", "simulate", PIPELINE, "--set", "training.global_batch=1k")


if __name__ == "__main__":
    unittest.main()
