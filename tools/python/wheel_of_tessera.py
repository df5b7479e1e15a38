"""Builds the wheel of this folder (PEP 517), so that `pip install tools/python` needs neither a network nor setuptools."""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def field(name):
    """A text of the [project] table."""
    return re.search(rf'(?m)^{name} = "(.*)"', (HERE / "pyproject.toml").read_text(encoding="utf-8")).group(1)


def metadata():
    return (f"Metadata-Version: 2.1\nName: {field('name')}\nVersion: {field('version')}\nSummary: {field('description')}\n"
            f"License: Apache-2.0\nRequires-Python: {field('requires-python')}\n")


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    stem = f"{field('name')}-{field('version')}"
    info = f"{stem}.dist-info"
    files = {path.relative_to(HERE).as_posix(): path.read_bytes() for path in sorted((HERE / "tessera").rglob("*.py"))}
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: wheel_of_tessera\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(record_line(name, content) for name, content in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    name = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(zipfile.ZipInfo(path), content)
    return name
