"""Every page in light, dark, on a phone and on paper looks as its picture in tests/data/pages does: tools/make_pictures."""

import os
import pathlib
import subprocess
import unittest

from tessera_command import PROGRAM

TOOL = pathlib.Path(__file__).resolve().parents[3] / "tools" / "make_pictures"
SKIPPED = 77


class Pictures(unittest.TestCase):
    def check(self, name):
        result = subprocess.run([TOOL, "--check", name], env={**os.environ, "TESSERA_PROGRAM": str(PROGRAM)}, capture_output=True, text=True,
                                timeout=280, check=False)
        if result.returncode == SKIPPED:
            self.skipTest("there is no Chromium on this machine")
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr[-2000:])

    def test_step(self):
        self.check("step")

    def test_compare(self):
        self.check("compare")

    def test_sweep(self):
        self.check("sweep")

    def test_layouts(self):
        self.check("layouts")

    def test_serve(self):
        self.check("serve")

    def test_memory(self):
        self.check("memory")

    def test_validate(self):
        self.check("validate")

    def test_replay(self):
        self.check("replay")

    def test_graph(self):
        self.check("graph")

    def test_topology(self):
        self.check("topology")

    def test_run(self):
        self.check("run")


if __name__ == "__main__":
    unittest.main()
