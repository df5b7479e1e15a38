"""Finds the program `tessera`, runs it, and turns its exit codes into exceptions."""

import json
import os
import shutil
import subprocess
import warnings
from pathlib import Path

DOES_NOT_FIT = 4
"""Exit code of an answer all the same: simulated or planned, but needs more memory than there is."""


class TesseraError(Exception):
    """The program gave no answer. `exit_code` is its exit code (None where it did not run), `message` what it said."""

    def __init__(self, message, exit_code=None):
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class ProgramNotFound(TesseraError):
    """There is no program to run."""


class Bug(TesseraError):
    """Exit code 1, or killed by a signal (negative): a bug of Tessera."""


class UsageError(TesseraError):
    """Exit code 2: unknown command or option."""


class InputError(TesseraError):
    """Exit code 3: a file or a value is wrong. `problems` lists everything that is, each with file:line:column."""

    @property
    def problems(self):
        return [line.removeprefix("error: ") for line in self.message.splitlines() if line.startswith("error: ")]


class OutOfTime(TesseraError):
    """Exit code 6: `simulation.time_limit` is over."""


class Interrupted(TesseraError):
    """Exit code 130."""


ERRORS = {2: UsageError, 3: InputError, 6: OutOfTime, 130: Interrupted}


def find_program():
    """Path of the program: $TESSERA, else the one that was installed with this package, else `tessera` on the PATH, else
    the build of the checkout that this package is in."""
    chosen = os.environ.get("TESSERA")
    if chosen:
        if not os.access(chosen, os.X_OK):
            raise ProgramNotFound(f"TESSERA names {chosen}, which cannot be run")
        return chosen
    here = Path(__file__).resolve()
    places = [shutil.which("tessera"), here.parents[3] / "build/release/bin/tessera"]
    if here.parts[-5:-2] == ("lib", "python3", "dist-packages"):
        places.insert(0, here.parents[4] / "bin/tessera")
    found = next((str(place) for place in places if place and os.access(place, os.X_OK)), None)
    if found is None:
        raise ProgramNotFound("there is no program 'tessera': set the environment variable TESSERA to its path, put it "
                              "on the PATH, or build it with ./tessera in a checkout")
    return found


def run(*arguments, accepted=(0, DOES_NOT_FIT), show_messages=False):
    """Runs the program with `arguments`; its stdout as text, its warnings as Python warnings.

    Raises TesseraError where the exit code is none of `accepted`. `show_messages` leaves stderr (progress) as it is.
    """
    command = [find_program(), *map(str, arguments)]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=None if show_messages else subprocess.PIPE, encoding="utf-8", check=False)
    except OSError as error:
        raise ProgramNotFound(f"{command[0]} cannot be run: {error.strerror}") from error
    messages = (result.stderr or "").strip()
    if result.returncode not in accepted:
        kind = ERRORS.get(result.returncode, Bug)
        raise kind(messages or f"'{' '.join(command)}' ended with exit code {result.returncode}", result.returncode)
    for line in messages.splitlines():
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
    return result.stdout


def ask(*arguments):
    """The JSON answer of any command that knows `--format json`, as dicts and lists.

    >>> ask("collective", "--cluster", "dgx-h100", "--op", "all_reduce", "--bytes", "1GiB")  # doctest: +SKIP
    """
    return json.loads(run(*arguments, "--format", "json"))
