"""The calls of the kernel suites as torch runs them."""

import json
import os
import tempfile

import plans

MOST_NAME = 110
DEVICE = "cuda"  # tests that have a torch without a GPU set "cpu"


def set_arithmetic(torch, tf32):
    """TF32 would replace fp32 products by tensor cores without a word."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.set_float32_matmul_precision("high" if tf32 else "highest")


def dtype_of(torch, name):
    return {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[name]


def product(torch, call):
    dtype = dtype_of(torch, call.dtype)

    def normal(*shape):
        return torch.randn(*shape, device=DEVICE, dtype=dtype)

    if call.op == "bmm":
        a, b = normal(call.batch, call.m, call.k), normal(call.batch, call.k, call.n)
        return lambda: torch.bmm(a, b)
    linear = torch.nn.functional.linear
    weight = normal(call.n, call.k)
    if call.batch is None:  # tensor_core.csv: no bias
        a = normal(call.m, call.k)
        return lambda: linear(a, weight)
    a, bias = normal(call.batch, call.m, call.k), normal(call.n)
    return lambda: linear(a, weight, bias)


def stream(torch, call):
    """Elementwise and row-wise calls, on numbers in (0, 1] so that none overflows."""
    def operand():
        return torch.rand(call.rows, call.cols, device=DEVICE).clamp_(min=1e-3)

    a = operand()
    if call.op in plans.BINARY:
        b = operand()
        function = getattr(torch, call.op)
        return lambda: function(a, b)
    if call.op in plans.SCALAR:
        function = getattr(torch, call.op.removesuffix("_scalar"))
        return lambda: function(a, 0.37)
    if call.op == "softmax":
        return lambda: torch.nn.functional.softmax(a, dim=-1)
    if call.op == "layer_norm":
        weight, bias = torch.rand(call.cols, device=DEVICE), torch.rand(call.cols, device=DEVICE)
        return lambda: torch.nn.functional.layer_norm(a, (call.cols,), weight, bias)
    function = torch.tanh if call.op == "tanh" else getattr(torch.nn.functional, call.op)
    return lambda: function(a)


def runnable(torch, call):
    """A function without arguments that runs `call`; its operands are on the GPU already."""
    set_arithmetic(torch, call.dtype == "tf32")
    return product(torch, call) if call.rows is None else stream(torch, call)


def flush_of(torch):
    """A function that fills L2 with something else."""
    size = max(getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0), 64 << 20)
    buffer = torch.zeros(2 * size // 4, device=DEVICE)
    return buffer.zero_


def launched(torch, function):
    """Columns on the kernels that one call launches; empty where the profiler does not work."""
    profiler = getattr(torch, "profiler", None)
    if profiler is None:
        return {}
    path = None
    try:
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
            function()
            torch.cuda.synchronize()
        handle, path = tempfile.mkstemp(suffix=".json")
        os.close(handle)
        profile.export_chrome_trace(path)
        with open(path, encoding="utf-8") as trace:
            events = json.load(trace)["traceEvents"]
    except (RuntimeError, OSError, ValueError, KeyError):
        return {}
    finally:
        if path:
            os.unlink(path)
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    if not kernels:
        return {}
    longest = max(kernels, key=lambda e: e["dur"])
    columns = {"kernel_name": longest["name"].split("(")[0].removeprefix("void ")[:MOST_NAME],
               "n_kernels": len(kernels)}
    for kind in ("grid", "block"):
        sizes = longest.get("args", {}).get(kind, [])
        columns.update({f"{kind}_{axis}": size for axis, size in zip("xyz", sizes)})
    return columns
