"""The commands as functions."""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from .answers import Comparison, MemoryPlan, Step, Table
from .program import ask, run


def simulate(scenario, *, set=None, trace=None, picture=None, report=None):  # noqa: A002, named as the option
    """Simulates one step and returns a Step; one that does not fit too (`step.fits` is False).

    `scenario`: a file, or the fields of a scenario as a dict (file names in it are absolute). `set`: overrides by
    field path, such as {"parallelism.tensor": 4}. `trace`, `picture`, `report`: files to write, as the command does.
    """
    with _as_file(scenario) as file:
        return Step(ask("simulate", file, *_settings(set), *_options(trace=trace, picture=picture, report=report)))


def plan_memory(scenario, budget=None, *, set=None, planner=None, swap=True, fast=False):  # noqa: A002
    """What to run again and to swap so that a step fits, as a MemoryPlan; `feasible` is False where nothing helps.

    `budget`: what the framework's allocator may hold per GPU, such as "40GiB" or a number of bytes; by default the
    scenario's `memory.budget`, else the memory of the GPU. `swap=False` allows recomputation alone; `fast=True` searches less.
    """
    if isinstance(budget, (int, float)):
        budget = f"{int(budget)}B"
    flags = ([] if swap else ["--no-swap"]) + (["--fast"] if fast else [])
    with _as_file(scenario) as file:
        return MemoryPlan(ask("plan", "memory", file, *_settings(set), *_options(budget=budget, planner=planner), *flags))


def compare(a, b, *, set=None, set_b=None, report=None):  # noqa: A002
    """Two steps beside each other, as a Comparison.

    `a`, `b`: each a scenario (file or dict), a Step, or a file of `tessera simulate --format json` or torch.profiler.
    `set` overrides fields of both scenarios, `set_b` of `b` alone.
    """
    with _as_file(a) as file_a, _as_file(b) as file_b:
        return Comparison(ask("compare", file_a, file_b, *_settings(set), *_settings(set_b, "--set-b"),
                              *_options(report=report)))


def sweep(spec, *, out=None, jobs=None, limit=None, sample=None, seed=None, resume=False, progress=False):
    """Simulates every point of a sweep; a Table with a dict per point, in the order of the grid.

    `spec`: a sweep file, or its content as a dict with `base`, `axes`, `where`, ... (docs/sweeps.md). `out` keeps the
    store, so that `resume=True` goes on where a run ended; without it nothing is kept. `progress` shows it on stderr.
    """
    with _as_file(_with_absolute_base(spec)) as file, contextlib.ExitStack() as stack:
        folder = out or stack.enter_context(tempfile.TemporaryDirectory())
        flags = ["--resume"] if resume else []
        run("sweep", file, "--out", folder, "--format", "jsonl", *flags,
            *_options(jobs=jobs, limit=limit, sample=sample, seed=seed), show_messages=progress)
        with open(Path(folder) / "results.jsonl", encoding="utf-8") as rows:
            return Table(_row(json.loads(line)) for line in rows)


def _row(point):
    """The fields that vary as columns of their own; they are texts in the file."""
    fields = {name: _number(text) for name, text in point.pop("fields").items()}
    return {"point": point.pop("point"), **fields, **point}


def _number(text):
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _with_absolute_base(spec):
    """File names in a sweep are relative to its folder; a dict has none, so its base is relative to ours."""
    base = spec.get("base") if isinstance(spec, dict) else None
    if isinstance(base, (str, os.PathLike)) and Path(base).is_file():
        return {**spec, "base": str(Path(base).resolve())}
    return spec


@contextlib.contextmanager
def _as_file(value):
    """A path as it is; a dict or Step as a file for as long as it is needed. YAML reads JSON."""
    if isinstance(value, (str, os.PathLike)):
        yield os.fspath(value)
        return
    with tempfile.TemporaryDirectory() as folder:
        is_step = isinstance(value, Step)
        file = Path(folder) / ("scenario.json" if is_step else "scenario.yaml")
        file.write_text(json.dumps(value.data if is_step else value), encoding="utf-8")
        yield str(file)


def _settings(values, option="--set"):
    words = []
    for path, value in (values or {}).items():
        words += [option, f"{path}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _options(**values):
    """`--name value` for each that is given."""
    return [word for name, value in values.items() if value is not None for word in (f"--{name}", value)]
