#!/usr/bin/env python3
"""Measures kernels or training steps of the GPU of this machine and writes CSV files that Tessera reads.

Usage: python3 tools/collect/collect.py --suite fp32 --out h200.csv [--resume] [--dry-run]. See README.md beside it.
Exit codes: 0 done, 2 wrong option, 3 cannot measure or write, 130 interrupted (what was measured is kept; --resume).
"""

import argparse
import datetime
import os
import platform
import signal
import sys

import gpu_state
import kernels
import plans
import steps
import timing
from output import Output, OutputError

FAILED, INTERRUPTED = 3, 130
DTYPES = ("bf16", "fp16", "tf32", "fp32")
MEMORY_SHARE = 0.8  # of the free memory that a call may take


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", required=True, choices=("fp32", "tensor-core", "steps"))
    parser.add_argument("--out", help="CSV to write; needed unless --dry-run")
    parser.add_argument("--gpu-id", help="id of configs/hw/gpus, where the driver's name is not known or wrong")
    parser.add_argument("--dtypes", default="bf16,fp16", help="of suite tensor-core (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=11, help="measurements per row (default: %(default)s)")
    parser.add_argument("--settle-seconds", type=float, default=0.3, help="busy time before a row (default: %(default)s)")
    parser.add_argument("--warm-up-seconds", type=float, default=60,
                        help="longest wait for a steady clock (default: %(default)s)")
    parser.add_argument("--flush-l2", action="store_true", help="clear L2 before every call")
    parser.add_argument("--small", action="store_true", help="a tenth of the shapes")
    parser.add_argument("--resume", action="store_true", help="keep the rows of --out, measure the missing ones")
    parser.add_argument("--dry-run", action="store_true", help="print the plan; needs neither GPU nor torch")
    options = parser.parse_args(arguments)
    options.dtypes = options.dtypes.split(",")
    if set(options.dtypes) - set(DTYPES):
        parser.error(f"--dtypes {','.join(options.dtypes)}: use some of {','.join(DTYPES)}")
    if options.repeats < 3:
        parser.error(f"--repeats {options.repeats}: use 3 or more, the spread needs them")
    if not options.out and not options.dry_run:
        parser.error("--out is missing: name the CSV to write")
    if options.flush_l2 and options.suite == "steps":
        parser.error("--flush-l2 is for kernels; a step leaves in L2 what it leaves")
    return options


def conditions(torch, options, gpu, device):
    """What the rows depend on, exactly."""
    return {"started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "gpu": gpu,
            "gpu_name": torch.cuda.get_device_name(0), "torch": torch.__version__, "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "python": platform.python_version(),
            "suite": options.suite, "repeats": options.repeats, "settle_seconds": options.settle_seconds,
            "l2": l2_state(options), "state": gpu_state.read_state(device),
            "environment": {name: os.environ[name] for name in sorted(os.environ)
                            if name.startswith(("CUDA_", "NVIDIA_TF32", "TORCH_", "CUBLAS"))}}


def l2_state(options):
    return "flushed" if options.flush_l2 else "warm"


def kernel_row(call, options, gpu):
    sizes = {"batch": call.batch, "m": call.m, "n": call.n, "k": call.k, "rows": call.rows, "cols": call.cols}
    return {"gpu": gpu, "op": call.op, "dtype": call.dtype, "split": call.split, **sizes, "source": "tools/collect",
            "stack": "torch", "l2": l2_state(options)}


class Session:
    """One run of the program on one GPU."""

    def __init__(self, torch, options, gpu, output):
        self.torch, self.options, self.gpu, self.output = torch, options, gpu, output
        self.device = gpu_state.smi_device(torch)
        self.flush = kernels.flush_of(torch) if options.flush_l2 else None
        output.start_session(conditions(torch, options, gpu, self.device))

    def row_of(self, entry):
        if self.options.suite == "steps":
            return steps.step_row(entry, self.gpu)
        return kernel_row(entry, self.options, self.gpu)

    def warm_up(self):
        burn = kernels.runnable(self.torch, plans.Call("linear", batch=1, m=4096, n=4096, k=4096))
        seen = timing.warm_up(self.torch, burn, self.clock, self.options.warm_up_seconds)
        self.output.sessions[-1]["warm_up"] = seen
        if seen["settled"] is not True:
            say("warning: the SM clock did not settle" if seen["settled"] is False
                else "warning: nvidia-smi does not answer; clock and power are not recorded")

    def clock(self):
        state = gpu_state.read_state(self.device)
        return state and state["sm_clock_mhz"]

    def measure_call(self, call):
        free, _ = self.torch.cuda.mem_get_info()
        if call.bytes() > MEMORY_SHARE * free:
            raise timing.NotTimed(f"needs {call.bytes() / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free")
        function = kernels.runnable(self.torch, call)
        with self.torch.no_grad():
            timing.settle(self.torch, function, self.options.settle_seconds)
            timed = timing.time_call(self.torch, function, self.options.repeats, self.flush)
            columns = kernels.launched(self.torch, function)
        return {"latency_us": f"{timed.median_us():.4f}", "timing": timed.method, "repeats": len(timed.seconds),
                "spread_pct": f"{timed.spread_pct():.2f}", **columns}

    def measure_step(self, step):
        kernels.set_arithmetic(self.torch, False)
        seconds, spread, memory = steps.measure_step(self.torch, step, self.options.repeats)
        return {"step_time_s": f"{seconds:.6f}", "peak_memory_GiB": f"{memory:.3f}", "memory_metric": "allocated",
                "notes": f"median of {self.options.repeats} steps; spread {spread:.2f} %"}

    def run(self, plan):
        missing = [entry for entry in plan if not self.output.has(self.row_of(entry))]
        say(f"{len(plan) - len(missing)} of {len(plan)} rows are there already" if len(missing) < len(plan)
            else f"{len(plan)} rows to measure on {self.gpu}")
        if missing:
            self.warm_up()
        for number, entry in enumerate(missing, start=1):
            say(f"[{number}/{len(missing)}] {entry.text()}")
            self.measure(entry)

    def measure(self, entry):
        before = gpu_state.read_state(self.device)
        measure = self.measure_step if self.options.suite == "steps" else self.measure_call
        try:
            columns = measure(entry)
        except (timing.NotTimed, RuntimeError) as error:  # out of memory is a RuntimeError
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            say(f"  left out: {reason}")
            self.output.leave_out(entry.text(), reason)
            self.torch.cuda.empty_cache()
            return
        after = gpu_state.read_state(self.device)
        self.output.add({**self.row_of(entry), **columns}, {"row": entry.text(), "before": before, "after": after})


def say(text):
    print(text, file=sys.stderr, flush=True)


def import_torch():
    try:
        import torch
    except ImportError as error:
        raise OutputError("torch is not installed; install PyTorch with CUDA, or look at --dry-run") from error
    if not torch.cuda.is_available():
        raise OutputError("torch sees no GPU; run this on the machine that has it")
    return torch


def collect(options, plan):
    torch = import_torch()
    gpu = options.gpu_id or gpu_state.gpu_id(torch.cuda.get_device_name(0))
    if gpu not in gpu_state.catalog_ids():
        raise OutputError(f"--gpu-id {gpu} is not in configs/hw/gpus; it has {', '.join(gpu_state.catalog_ids())}")
    Session(torch, options, gpu, Output(options.out, options.suite, gpu, options.resume)).run(plan)


def main(arguments):
    options = options_of(arguments)
    plan = plans.plan_of(options.suite, options.dtypes, options.small)
    if options.dry_run:
        print("\n".join(f"{getattr(entry, 'split', '-'):5} {entry.text()}" for entry in plan))
        print(f"{len(plan)} rows")
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        collect(options, plan)
    except (OutputError, gpu_state.UnknownGpu, steps.NoTransformers, OSError) as error:
        say(f"error: {error}")
        return FAILED
    except KeyboardInterrupt:
        say("interrupted; --resume goes on from here")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
