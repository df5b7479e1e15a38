"""tools/setup installs only what is missing, asks on a terminal alone, and says what went wrong. Debian's tools are stand-ins here."""

import contextlib
import fcntl
import os
import pty
import shutil
import subprocess
import tempfile
import termios
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

PACKAGES = "# libraries\ng++\nlibone-dev\n\nlibtwo-dev\nclang-tidy tidy\n"

# Each stand-in writes its name and arguments to the file $CALLS.
STAND_INS = {
    "id": "echo 1000",
    "sudo": '[ ! -e "$FAKES/no-sudo" ] || exit 1; shift; exec "$@"',
    "dpkg-query": "printf 'installed g++\\ninstalled libone-dev\\nconfig-files libtwo-dev\\n'",
    "apt-get": 'echo "apt-get $*" >>"$CALLS"; case "$*" in *install*) [ ! -e "$FAKES/no-lists" ] ;; '
               '*update*) rm -f "$FAKES/no-lists" ;; esac',
    "ccache": "exit 1",
    "cmake": 'echo "cmake $*" >>"$CALLS"; mkdir -p "build/$2"; touch "build/$2/build.ninja"; '
             'echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"build/$2/CMakeCache.txt"',
    "ninja": 'echo "ninja $CCACHE_DISABLE" >>"$CALLS"; cat "$FAKES/ninja-output" 2>/dev/null; [ ! -e "$FAKES/ninja-output" ]',
}


class SetupScript(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.outside = Path(folder.name).resolve()
        self.root = self.outside / "a checkout with spaces"
        self.fakes = self.outside / "fakes"
        self.calls = self.outside / "calls"
        self.fakes.mkdir()
        (self.root / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools/setup", self.root / "tools/setup")
        (self.root / "tools/packages.txt").write_text(PACKAGES)
        (self.root / "CMakePresets.json").write_text("{}")
        os.utime(self.root / "CMakePresets.json", (0, 0))
        for name, body in STAND_INS.items():
            (self.fakes / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.fakes / name).chmod(0o755)

    def environment(self, **more):
        return {"PATH": f"{self.fakes}:/usr/bin:/bin", "FAKES": str(self.fakes), "CALLS": str(self.calls), **more}

    def run_setup(self, *arguments, **variables):
        self.calls.write_text("")
        return subprocess.run([self.root / "tools/setup", *arguments], env=self.environment(**variables), cwd=self.outside,
                              capture_output=True, text=True, check=False)

    def called(self, program):
        return [line for line in self.calls.read_text().splitlines() if line.startswith(program)]

    def test_installs_what_is_missing_alone_without_fetching_lists(self):
        result = self.run_setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertIn("set-up: installing libtwo-dev", result.stderr)
        self.assertEqual(len(self.called("apt-get")), 1)
        self.assertTrue(self.called("apt-get")[0].endswith("install -y --no-install-recommends libtwo-dev"))

    def test_fetches_the_package_lists_where_they_are_missing(self):
        (self.fakes / "no-lists").touch()
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertEqual([call.split()[6] for call in self.called("apt-get")], ["install", "update", "install"])

    def test_a_preset_installs_its_own_packages(self):
        self.run_setup("--preset", "tidy")
        self.assertTrue(self.called("apt-get")[0].endswith("clang-tidy libtwo-dev"))
        self.assertEqual(self.called("cmake"), ["cmake --preset tidy"])

    def test_a_single_target_needs_no_packages_of_the_tests(self):
        (self.root / "tools/packages.txt").write_text("libtwo-dev\npython3-torch test\n")
        self.run_setup("--target", "tessera")
        self.assertFalse([line for line in self.called("apt-get") if "python3-torch" in line])
        self.run_setup()
        self.assertTrue([line for line in self.called("apt-get") if "python3-torch" in line])

    def test_names_the_missing_packages_where_it_may_not_install_them(self):
        (self.fakes / "no-sudo").touch()
        result = self.run_setup()
        self.assertEqual(result.returncode, 1)
        self.assertIn("as root, run: apt-get install --no-install-recommends libtwo-dev", result.stderr)
        self.assertEqual(self.called("apt-get") + self.called("cmake"), [])

    def test_prints_what_is_missing_and_stops_where_it_is_told_not_to_install(self):
        result = self.run_setup(TESSERA_NO_INSTALL="1")
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("TESSERA_NO_INSTALL is set", result.stderr)
        self.assertIn("as root, run: apt-get install --no-install-recommends libtwo-dev", result.stderr)
        self.assertEqual(self.called("apt-get") + self.called("cmake"), [])

    def test_builds_without_installing_where_nothing_is_missing(self):
        (self.root / "tools/packages.txt").write_text("g++\n")
        self.assertEqual(self.run_setup(TESSERA_NO_INSTALL="1").returncode, 0)
        self.assertEqual(self.called("cmake"), ["cmake --preset release"])

    def run_on_terminal(self, answer):
        """Exit code and what the terminal showed."""
        ours, theirs = pty.openpty()
        os.write(ours, answer)
        self.calls.write_text("")
        process = subprocess.Popen(
            [self.root / "tools/setup"], env=self.environment(), cwd=self.outside, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
        return process.wait(), shown.decode()

    def test_asks_on_a_terminal(self):
        for answer in (b"n\n", b"\n", b"\x04"):
            code, shown = self.run_on_terminal(answer)
            self.assertEqual(code, 3, shown)
            self.assertIn("install them as root with apt-get? [y/N]", shown)
            self.assertIn("nothing was installed", shown)
            self.assertEqual(self.called("apt-get") + self.called("cmake"), [])
        code, shown = self.run_on_terminal(b"y\n")
        self.assertEqual(code, 0, shown)
        self.assertEqual(len(self.called("apt-get")), 1)

    def test_configures_once_and_again_in_a_moved_checkout(self):
        self.run_setup()
        self.assertEqual(self.called("cmake"), ["cmake --preset release"])
        self.run_setup()
        self.assertEqual(self.called("cmake"), [])
        self.root = self.root.rename(self.outside / "moved")
        self.run_setup()
        self.assertEqual(self.called("cmake"), ["cmake --preset release"])

    def test_goes_without_ccache_where_that_cannot_work(self):
        self.run_setup()
        self.assertEqual(self.called("ninja"), ["ninja 1"])

    def test_a_failed_build_shows_the_error_and_the_log_and_leaves_no_stamp(self):
        (self.fakes / "ninja-output").write_text("[1/2] compiling a\nFAILED: b.o\nb.cpp:1: error: x\n[2/2] other\n")
        result = self.run_setup()
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.splitlines()[-3:], [
            "FAILED: b.o", "b.cpp:1: error: x",
            f"set-up: the build failed; the whole log: {self.root}/build/release/setup.log"])
        self.assertFalse((self.root / "build/release/stamp-tessera").exists())

    def test_says_what_the_build_says_about_charts(self):
        (self.fakes / "ninja").write_text("#!/bin/sh\necho '[1/2] Chart library'\necho 'charts: npm is not installed, so'\n")
        result = self.run_setup()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("set-up: charts: npm is not installed, so\n", result.stderr)

    def test_an_empty_chart_library_is_made_again_once_there_is_npm(self):
        (self.fakes / "npm").write_text("#!/bin/sh\n")
        (self.fakes / "npm").chmod(0o755)
        library = self.root / "build/release/generated/app/html/charts.js"
        self.run_setup()
        library.parent.mkdir(parents=True)
        library.write_text("full")
        self.run_setup()
        self.assertTrue(library.exists())
        library.write_text("")
        self.run_setup()
        self.assertFalse(library.exists())

    def test_rejects_an_unknown_argument_as_usage_error(self):
        result = self.run_setup("--fast")
        self.assertEqual(result.returncode, 2)
        self.assertIn("unknown argument '--fast'", result.stderr)


if __name__ == "__main__":
    unittest.main()
