"""Which GPU this is, and the state that it is in."""

import os
import re
import subprocess
from pathlib import Path

CATALOG = Path(__file__).resolve().parent.parent.parent / "configs/hw/gpus"

# What the driver calls a GPU (without the vendor) -> id of configs/hw/gpus. The first match counts.
NAMES = ((r"GB300", "GB300"), (r"GB200", "GB200"), (r"B300", "B300-SXM-288GB"), (r"B200", "B200-SXM-180GB"),
         (r"GH200", "GH200-96GB"), (r"H200(?! NVL)", "H200-SXM5-141GB"), (r"H20$", "H20"),
         (r"H800(?! PCIe)", "H800-SXM5-80GB"), (r"H100 NVL", "H100-NVL"), (r"H100 PCIe", "H100-PCIe-80GB"),
         (r"H100 80GB HBM3", "H100-SXM5-80GB"), (r"A100-SXM4-40GB", "A100-SXM4-40GB"),
         (r"A100-SXM4-80GB", "A100-SXM4-80GB"), (r"A100-PCIE-40GB", "A100-PCIe-40GB"),
         (r"A100 80GB PCIe", "A100-PCIe-80GB"), (r"A800-SXM4-80GB", "A800-SXM4-80GB"), (r"A40$", "A40"), (r"A10$", "A10"),
         (r"A10G$", "A10G"), (r"L40S$", "L40S"), (r"L20$", "L20"), (r"L4$", "L4"),
         (r"RTX PRO 6000 Blackwell Server", "RTX-PRO-6000-Server"), (r"RTX PRO 6000 Blackwell Max-Q", "RTX-PRO-6000-MaxQ"),
         (r"RTX 6000 Ada", "RTX-6000-Ada"), (r"RTX A6000$", "RTX-A6000"), (r"Quadro RTX 6000$", "Quadro-RTX-6000"),
         (r"Quadro RTX 8000$", "Quadro-RTX-8000"), (r"RTX 5090$", "RTX-5090"), (r"RTX 4090$", "RTX-4090"),
         (r"RTX 3090$", "RTX-3090"), (r"TITAN V$", "TitanV"), (r"V100S-PCIE-32GB", "V100S-PCIe-32GB"),
         (r"V100-SXM2-16GB", "V100-SXM2-16GB"), (r"V100-SXM2-32GB", "V100-SXM2-32GB"),
         (r"V100-SXM3-32GB", "V100-SXM3-32GB"), (r"V100-PCIE-32GB", "V100-PCIe-32GB"),
         (r"V100-PCIE-16GB", "V100-PCIe-16GB"), (r"P100-PCIE-16GB", "P100-PCIe-16GB"),
         (r"P100-SXM2-16GB", "P100-SXM2-16GB"), (r"P4$", "P4"), (r"T4$", "T4"), (r"MI355X", "MI355X"),
         (r"MI325X", "MI325X"), (r"MI300X", "MI300X"), (r"MI210", "MI210"), (r"MI100", "MI100"),
         (r"Pro B60 Graphics$", "Intel-B60"))

# Field of nvidia-smi -> name here, and whether it is a number.
FIELDS = (("power.draw", "power_w", True), ("clocks.sm", "sm_clock_mhz", True), ("clocks.mem", "memory_clock_mhz", True),
          ("temperature.gpu", "temperature_c", True), ("power.limit", "power_cap_w", True),
          ("persistence_mode", "persistence_mode", False), ("pstate", "power_state", False),
          ("clocks_throttle_reasons.active", "throttle_reasons", False), ("driver_version", "driver", False))


class UnknownGpu(Exception):
    """The GPU has no id in the catalog; the text says what to do."""


def catalog_ids():
    return sorted(path.stem for path in CATALOG.glob("*.yaml"))


def gpu_id(name):
    """Id of the catalog for what the driver calls the GPU."""
    plain = re.sub(r"^(NVIDIA|Tesla|AMD Instinct|AMD) +", "", re.sub(r"^NVIDIA +", "", name.strip()))
    for pattern, known in NAMES:
        if re.search(rf"(?:^|[ -]){pattern}", plain):
            return known
    raise UnknownGpu(f"no id is known for the GPU '{name}'; give --gpu-id, one of {', '.join(catalog_ids())}")


def smi_device(torch):
    """What nvidia-smi calls the GPU that torch runs on."""
    uuid = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    if uuid is not None:
        return f"GPU-{uuid}".replace("GPU-GPU-", "GPU-")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return visible or "0"


def read_state(device):
    """Clock, power and temperature now; None where nvidia-smi does not answer."""
    # Newer drivers may know the throttle reasons by another name and then refuse the whole query.
    for fields in (FIELDS, [field for field in FIELDS if field[1] != "throttle_reasons"]):
        values = query(device, [field for field, _, _ in fields])
        if values is not None:
            return {name: parsed(value, is_number) for (_, name, is_number), value in zip(fields, values)}
    return None


def query(device, fields):
    try:
        result = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits",
                                 "-i", device], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = result.stdout.strip().splitlines()
    values = [value.strip() for value in lines[0].split(",")] if lines else []
    return values if len(values) == len(fields) else None


def parsed(value, is_number):
    if not is_number:
        return value
    try:
        return float(value)
    except ValueError:  # "[N/A]"
        return None
