"""How the tests run tools/collect: with a fake torch, a fake nvidia-smi, no waiting."""

import csv
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FAKES = ROOT / "tests/tools/fake_torch"

# Knows the query without the throttle reasons alone, as drivers do that call those otherwise.
FAKE_SMI = """#!/bin/sh
case "$1" in
--query-gpu=power.draw,clocks.sm,clocks.mem,temperature.gpu,power.limit,persistence_mode,pstate,driver_version)
  echo "651.3, 1755, 3201, 64, 700.00, Enabled, P0, 555.42" ;;
*) exit 2 ;;
esac
"""


def plant_smi(folder):
    folder.mkdir(exist_ok=True)
    smi = folder / "nvidia-smi"
    smi.write_text(FAKE_SMI)
    smi.chmod(0o755)
    return folder


def run_collect(folder, *arguments, **environment):
    """Runs the program in `folder`; keyword arguments are environment variables."""
    path = f"{plant_smi(folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-B", ROOT / "tools/collect/collect.py", "--settle-seconds", "0", "--warm-up-seconds", "0.2",
         "--repeats", "3", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(FAKES), **environment})


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
