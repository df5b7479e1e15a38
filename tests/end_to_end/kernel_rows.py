"""Kernels with invented times, in the format of docs/validation.md: enough for a training run of a second."""

COLUMNS = ("gpu", "op", "split", "batch", "m", "n", "k", "rows", "cols", "latency_us", "kernel_name", "grid_x",
           "grid_y", "grid_z")
LAUNCH_US = 10.0
TILE = 128


def tiles(size):
    return -(-size // TILE)


def product(gpu, op, batch, m, n, k):
    """A matrix product at 5 TFLOP/s."""
    latency = LAUNCH_US + 2 * batch * m * n * k / 5e6
    return {"gpu": gpu, "op": op, "split": "train", "batch": batch, "m": m, "n": n, "k": k, "latency_us": latency,
            "kernel_name": "sgemm_128x128_tn", "grid_x": tiles(m), "grid_y": tiles(n), "grid_z": batch}


def stream(gpu, op, rows, cols, passes):
    """Reads and writes `passes` times the data at 500 GB/s."""
    latency = LAUNCH_US + 4 * passes * rows * cols / 5e5
    return {"gpu": gpu, "op": op, "split": "train", "rows": rows, "cols": cols, "latency_us": latency,
            "kernel_name": op, "grid_x": rows, "grid_y": 1, "grid_z": 1}


def kernels_of(gpu):
    for size in (256, 512, 1024, 2048):
        yield product(gpu, "linear", 1, size, size, size)
        yield product(gpu, "bmm", 8, size, size, 64)
        yield stream(gpu, "add", size, 4096, passes=3)
        yield stream(gpu, "softmax", size, 4096, passes=2)


def kernel_csv(gpus=("A100-PCIe-40GB", "P100-PCIe-16GB", "V100-PCIe-32GB")):
    lines = [",".join(COLUMNS)]
    for gpu in gpus:
        lines += (",".join(str(row.get(column, "")) for column in COLUMNS) for row in kernels_of(gpu))
    return "\n".join(lines) + "\n"
