"""Tessera from Python: how long a training step takes, where the time goes and whether it fits.

    import tessera
    step = tessera.simulate("configs/scenarios/gpt2-large_4xh100_dp4.yaml", set={"parallelism.data": 2})
    print(step.step_time_s, step.memory.peak_bytes, step.fits)

Every function runs the program `tessera` and gives its JSON answer back as an object. Units are in the names, as in
the JSON: `_s` seconds, `_bytes` bytes, `_per_s` per second; shares, MFU and HFU are ratios from 0 to 1. `tessera.torch`
runs steps of PyTorch under a memory budget.
"""

import importlib

from .answers import Answer, Comparison, MemoryPlan, Step, Table
from .commands import compare, plan_memory, simulate, sweep
from .program import Bug, InputError, Interrupted, OutOfTime, ProgramNotFound, TesseraError, UsageError, ask, run

__all__ = ["Answer", "Bug", "Comparison", "InputError", "Interrupted", "MemoryPlan", "OutOfTime", "ProgramNotFound",
           "Step", "Table", "TesseraError", "UsageError", "ask", "compare", "plan_memory", "run", "simulate", "sweep"]


def __getattr__(name):
    """`tessera.torch` is loaded when it is asked for: the rest of the package needs no PyTorch."""
    if name == "torch":
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'tessera' has no attribute '{name}'")
