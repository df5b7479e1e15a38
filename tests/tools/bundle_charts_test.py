"""tools/bundle_charts: without npm or its packages there are no charts, and it says so; what npm installs is pinned."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CHARTS = ROOT / "app/html/charts"


class BundleCharts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.library = self.folder / "charts.js"
        self.programs = self.folder / "programs"
        self.programs.mkdir()

    def plant(self, name, body):
        (self.programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.programs / name).chmod(0o755)

    def bundle(self, mode):
        command = [sys.executable, "-B", ROOT / "tools/bundle_charts", mode, self.folder / "work", self.library]
        return subprocess.run(command, env={"PATH": str(self.programs)}, capture_output=True, text=True, check=False)

    def test_without_npm_the_library_is_empty_and_the_message_says_what_to_do(self):
        result = self.bundle("auto")
        self.assertEqual((result.returncode, self.library.read_text()), (0, ""))
        self.assertRegex(result.stdout, "^charts: npm is not installed, so HTML reports hold timeline and tables, no charts. .*install npm")

    def test_where_npm_fails_the_message_says_why_and_nothing_is_left(self):
        self.plant("npm", "echo 'npm error network unreachable' >&2; exit 1")
        self.plant("node", "exit 0")
        result = self.bundle("auto")
        self.assertEqual((result.returncode, self.library.read_text()), (0, ""))
        self.assertIn("charts: npm failed: npm error network unreachable, so", result.stdout)
        self.assertFalse((self.folder / "work").exists())

    def test_charts_that_have_to_be_there_fail_the_build(self):
        result = self.bundle("on")
        self.assertEqual(result.returncode, 1)
        self.assertIn("charts: npm is not installed; TESSERA_CHARTS=AUTO builds without charts", result.stderr)
        self.assertFalse(self.library.exists())

    def test_off_asks_for_nothing(self):
        self.plant("npm", "exit 1")
        result = self.bundle("off")
        self.assertEqual((result.returncode, result.stdout, self.library.read_text()), (0, "", ""))

    def test_every_package_is_pinned_by_version_and_hash_and_no_registry_is_named(self):
        package = json.loads((CHARTS / "package.json").read_text())
        wanted = {**package["dependencies"], **package["devDependencies"]}
        self.assertTrue(all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values()), wanted)
        text = (CHARTS / "package-lock.json").read_text()
        self.assertNotIn("://", text)
        locked = json.loads(text)["packages"]
        for name, entry in locked.items():
            if name != "":
                self.assertRegex(entry["integrity"], "^sha512-", name)
        for name, version in wanted.items():
            self.assertEqual(locked[f"node_modules/{name}"]["version"], version)


if __name__ == "__main__":
    unittest.main()
