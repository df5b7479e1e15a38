"""The CSV and its sidecar. Both are rewritten whole after every row, through a temporary file and a rename, so that an
interrupted run leaves complete rows and nothing else."""

import csv
import io
import json
import os
from pathlib import Path

FP32_COLUMNS = ("gpu", "op", "split", "batch", "m", "n", "k", "rows", "cols", "latency_us", "kernel_name", "n_kernels",
                "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "source", "timing", "repeats",
                "spread_pct", "l2")
TENSOR_CORE_COLUMNS = ("gpu", "dtype", "m", "n", "k", "latency_us", "stack", "source", "split", "timing", "repeats",
                       "spread_pct", "l2")
STEP_COLUMNS = ("id", "gpu", "n_gpus", "gpus_per_node", "nvlink", "inter_node_GBps_per_gpu", "framework", "precision",
                "model", "family", "layers", "hidden", "heads", "kv_heads", "ffn", "gated_mlp", "vocab",
                "tied_embeddings", "seq_len", "experts", "experts_per_token", "tp", "sequence_parallel", "pp",
                "virtual_stages", "dp", "cp", "ep", "zero_stage", "zero_group_size", "micro_batch", "global_batch",
                "recompute", "flash_attention", "optimizer", "step_time_s", "peak_memory_GiB", "memory_metric",
                "quality", "derived", "assumed", "source", "notes")
COLUMNS = {"fp32": FP32_COLUMNS, "tensor-core": TENSOR_CORE_COLUMNS, "steps": STEP_COLUMNS}
# What tells one row of a suite from another.
KEYS = {"fp32": ("op", "batch", "m", "n", "k", "rows", "cols", "l2"), "tensor-core": ("dtype", "m", "n", "k", "l2"),
        "steps": ("model", "framework", "precision", "seq_len", "global_batch")}


class OutputError(Exception):
    """The output cannot be used; the text says why and what to do."""


def replace_file(path, text):
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def as_text(value):
    return "" if value is None else str(value)


class Output:
    """Rows of one suite at `path`, conditions in `<path>.json`."""

    def __init__(self, path, suite, gpu, resume):
        self.path = Path(path)
        self.sidecar_path = self.path.with_name(self.path.name + ".json")
        self.suite = suite
        self.rows = []
        self.sessions = []
        if self.path.exists():
            if not resume:
                raise OutputError(f"{path} exists; give --resume to add what is missing, or another --out")
            self.read(gpu)

    def read(self, gpu):
        with open(self.path, encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if tuple(reader.fieldnames or ()) != COLUMNS[self.suite]:
                raise OutputError(f"{self.path} has other columns than suite {self.suite} writes; give another --out")
            self.rows = list(reader)
        others = {row["gpu"] for row in self.rows} - {gpu}
        if others:
            raise OutputError(f"{self.path} holds rows of {', '.join(sorted(others))}, this GPU is {gpu}; "
                              "give another --out")
        if self.sidecar_path.exists():
            self.sessions = json.loads(self.sidecar_path.read_text(encoding="utf-8"))["sessions"]

    def key(self, row):
        return tuple(as_text(row.get(column)) for column in KEYS[self.suite])

    def has(self, row):
        key = self.key(row)
        return any(self.key(known) == key for known in self.rows)

    def start_session(self, conditions):
        self.sessions.append({"conditions": conditions, "measured": [], "left_out": []})

    def add(self, row, record):
        """A measured row with its record of the GPU's state."""
        self.rows.append({column: as_text(row.get(column)) for column in COLUMNS[self.suite]})
        self.sessions[-1]["measured"].append(record)
        self.write()

    def leave_out(self, what, reason):
        self.sessions[-1]["left_out"].append({"what": what, "reason": reason})
        self.write()

    def write(self):
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS[self.suite], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        # The sidecar first: a row never stands in the CSV without its conditions.
        replace_file(self.sidecar_path, json.dumps({"schema": "tessera.collect/1", "suite": self.suite,
                                                    "csv": self.path.name, "sessions": self.sessions}, indent=1) + "\n")
        replace_file(self.path, text.getvalue())
