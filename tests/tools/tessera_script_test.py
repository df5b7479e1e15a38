"""./tessera sets up when it must, and only then, and passes arguments, output and exit code through."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# Stands in for tools/setup: says so on stdout and stderr, and "builds" a program that prints its arguments.
FAKE_SETUP = """#!/bin/sh
root=$(cd "$(dirname "$0")/.." && pwd -P)
echo "set up $*"
[ ! -e "$root/broken" ] || exit 1
mkdir -p "$root/build/release/bin"
printf '%s\\n' "$root" >"$root/build/release/stamp-$2"
printf '%s\\n' '#!/bin/sh' 'pwd -P' 'for a; do echo "[$a]"; done' 'exit 4' >"$root/build/release/bin/$2"
chmod +x "$root/build/release/bin/$2"
"""


class TesseraScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.outside = Path(folder.name).resolve()
        self.root = self.outside / "a checkout with spaces"
        for name in ("tools", "cmake", "configs/schema", "hw", "predictor", "sim", "workloads", "app", "lab"):
            (self.root / name).mkdir(parents=True)
        for name in ("CMakeLists.txt", "CMakePresets.json", "hw/gpu.cpp"):
            (self.root / name).write_text("")
        shutil.copy(ROOT / "tessera", self.root / "tessera")
        (self.root / "tools/setup").write_text(FAKE_SETUP)
        (self.root / "tools/setup").chmod(0o755)

    def run_script(self, *arguments, script=None, folder=None):
        return subprocess.run([script or self.root / "tessera", *arguments], cwd=folder or self.outside,
                              capture_output=True, text=True, check=False)

    def assert_set_up(self, expected):
        self.assertEqual("set up" in self.run_script("list").stderr, expected)

    def test_first_use_sets_up_on_stderr_then_answers(self):
        result = self.run_script("show", "a b", "")
        self.assertEqual(result.stderr, "set up --target tessera\n")
        self.assertEqual(result.stdout, f"{self.outside}\n[show]\n[a b]\n[]\n")
        self.assertEqual(result.returncode, 4)

    def test_a_command_of_the_laboratory_builds_it_too(self):
        self.assertEqual(self.run_script("list").stderr, "set up --target tessera\n")
        self.assertEqual(self.run_script("validate").stderr, "set up --target tessera-lab\n")
        self.assertEqual(self.run_script("validate").stderr, "")
        (self.root / "lab/fit.cpp").write_text("")
        self.assert_set_up(False)
        self.assertEqual(self.run_script("train").stderr, "set up --target tessera-lab\n")

    def test_second_use_answers_at_once(self):
        self.assert_set_up(True)
        self.assert_set_up(False)

    def test_a_changed_added_or_removed_source_sets_up_again(self):
        changes = {
            "changed": lambda: os.utime(self.root / "hw/gpu.cpp"),
            "added": lambda: (self.root / "sim/plan.cpp").write_text(""),
            "removed": lambda: (self.root / "hw/gpu.cpp").unlink(),
        }
        for name, change in changes.items():
            with self.subTest(name):
                self.run_script("list")
                time.sleep(0.02)  # past the granularity of file times
                change()
                self.assert_set_up(True)
                self.assert_set_up(False)

    def test_a_moved_checkout_sets_up_again(self):
        self.run_script("list")
        self.root = self.root.rename(self.outside / "moved")
        self.assert_set_up(True)

    def test_works_through_a_symbolic_link_and_by_its_bare_name(self):
        link = self.outside / "link"
        link.symlink_to(self.root / "tessera")
        self.assertEqual(self.run_script("list", script=link).stdout, f"{self.outside}\n[list]\n")
        by_name = subprocess.run(["sh", "tessera", "list"], cwd=self.root, capture_output=True, text=True, check=False)
        self.assertEqual(by_name.stdout, f"{self.root}\n[list]\n")

    def test_a_failed_set_up_ends_with_1_and_no_answer(self):
        (self.root / "broken").write_text("")
        result = self.run_script("list")
        self.assertEqual((result.returncode, result.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
