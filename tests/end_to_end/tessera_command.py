"""How the end-to-end tests run the built program. TESSERA_PROGRAM names another one than the release build."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = Path(os.environ.get("TESSERA_PROGRAM", ROOT / "build/release/bin/tessera"))

SCENARIOS = ROOT / "configs/scenarios"
DATA_PARALLEL = SCENARIOS / "gpt2-large_4xh100_dp4.yaml"
EXPERTS = SCENARIOS / "mixtral-8x7b_64xh100_tp2_pp4_ep8_bf16.yaml"
PIPELINE = SCENARIOS / "gpt3-xl_4xh100_pp4_1f1b.yaml"


# Told where a run takes long.
PROGRESS = re.compile(r"^\d+/\d+ \w+, .* left\n", re.MULTILINE)
# What the address sanitizer says of SimGrid's switching between stacks; it is no finding.
STACK_SWITCH_NOTICE = re.compile(
    r"==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return:.*\n"
    r"False positive error reports may follow\nFor details see .*\n")


def settings(*assignments):
    """`--set` for each `path=value`."""
    return [argument for assignment in assignments for argument in ("--set", assignment)]


class EndToEnd(unittest.TestCase):
    """Runs the program in an empty folder of the test's own."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()

    def run_tessera(self, *arguments, **options):
        """Stdout and stderr are text."""
        command = [PROGRAM, *map(str, arguments)]
        result = subprocess.run(command, cwd=options.pop("cwd", self.folder), stdin=subprocess.DEVNULL,
                                stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, text=True,
                                timeout=120, check=False, **options)
        result.stderr = STACK_SWITCH_NOTICE.sub("", result.stderr)
        return result

    def answer(self, *arguments):
        """Stdout of a run that has to succeed and to say nothing on stderr, but how far it is where the machine is busy."""
        result = self.run_tessera(*arguments)
        self.assertEqual((result.returncode, PROGRESS.sub("", result.stderr)), (0, ""), arguments)
        return result.stdout

    def simulate(self, scenario, *assignments):
        """The JSON result of a scenario with overrides."""
        return json.loads(self.answer("simulate", scenario, "--format", "json", *settings(*assignments)))

    def page(self, name):
        """The document that an HTML report draws."""
        text = (self.folder / name).read_text()
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1))

    def assert_fails(self, exit_code, message, *arguments, **options):
        """The run fails with `exit_code`, `message` is part of stderr, and stdout stays empty."""
        result = self.run_tessera(*arguments, **options)
        self.assertEqual(result.returncode, exit_code, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertFalse(result.stdout)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def plant(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path
