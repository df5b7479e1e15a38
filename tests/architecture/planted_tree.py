"""A small repository in a temporary folder, in which tests plant what a check has to find."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class PlantedTree(unittest.TestCase):
    """Runs `tools/<CHECK> <tree>` of the repository over files that a test writes."""

    CHECK = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)

    def plant(self, path, content):
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def run_check(self):
        return subprocess.run([sys.executable, ROOT / "tools" / self.CHECK, self.tree], capture_output=True, text=True,
                              check=False)

    def assert_passes(self):
        result = self.run_check()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def assert_finds(self, *expected_lines):
        """The check fails, and prints exactly these lines."""
        result = self.run_check()
        self.assertEqual(result.stdout.splitlines(), list(expected_lines), result.stderr)
        self.assertEqual(result.returncode, 1)
