#!/usr/bin/env python3
"""The shared libraries that a program needs, and the ones that stand in for those that it does without.

Usage: packaging/libraries.py MODULE FOLDER
Fills FOLDER with what stands in for the libraries that MODULE, a shared object, would load and never calls. Needs binutils and gcc for x86-64.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# Debian builds SimGrid with ns-3 as one of its network models. Tessera never selects that one; ns-3 and the GSL below it
# are under the GPL, and they take four fifths of the time to load SimGrid. Empty libraries of the same names are loaded instead.
LEFT_OUT = re.compile(r"libns3-[a-z-]+\.so\.\d+$")
# Static objects of SimGrid call these when it is loaded and unloaded; all others say that ns-3 is missing.
CALLED_AT_START = re.compile(r"(Helper|Container)[CD][12]E|^_ZN3ns34Time(10StaticInit|4Mark|5Clear)")
LOADER = "ld-linux-x86-64.so.2"

STUB_HEAD = """
.section .rodata
message: .ascii "error: ns-3 is not part of Tessera\\n"
message_end:
.text
missing:
  mov $1, %eax
  mov $2, %edi
  lea message(%rip), %rsi
  mov $(message_end - message), %edx
  syscall
  mov $231, %eax
  mov $1, %edi
  syscall
.section .note.GNU-stack,"",@progbits
"""


def output_of(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def needed_names(file):
    """Names in the NEEDED entries of an ELF file."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", file))


def resolved_paths(program):
    """Name -> path of every library that the loader of this machine would load."""
    paths = dict(re.findall(r"(?m)^\s*(\S+) => (/\S+)", output_of("ldd", program)))
    loader = re.search(rf"(?m)^\s*(/\S*{re.escape(LOADER)})", output_of("ldd", program)).group(1)
    return {**paths, LOADER: loader}


def needed_libraries(programs):
    """(name -> path of the libraries to carry, names of those left out), following what is carried alone."""
    paths = {name: path for program in programs for name, path in resolved_paths(program).items()}
    carried, left_out, open_files = {}, set(), list(programs)
    while open_files:
        for name in needed_names(open_files.pop()):
            if LEFT_OUT.match(name):
                left_out.add(name)
            elif name not in carried:
                carried[name] = Path(paths[name]).resolve()
                open_files.append(carried[name])
    return carried, left_out


def undefined_symbols(libraries, left_out_paths):
    """Name -> size of the data behind it (0: code) of what `libraries` take from those left out."""
    wanted = {line.split()[-1] for library in libraries
              for line in output_of("nm", "-D", "--undefined-only", library).splitlines()}
    defined = {}
    for library in left_out_paths:
        for line in output_of("nm", "-D", "-S", "--defined-only", library).splitlines():
            words = line.split()
            if len(words) == 4 and words[3] in wanted:
                defined[words[3]] = 0 if words[2] in "TtWi" else int(words[1], 16)
    return defined


def stub_source(symbols):
    """Assembler of a library that defines `symbols` (name -> bytes of data, 0 for code)."""
    text = STUB_HEAD
    for name, size in sorted(symbols.items()):
        if size:
            text += f'.section .data\n.balign 32\n.globl "{name}"\n.type "{name}",@object\n.size "{name}",{size}\n"{name}": .zero {size}\n'
        else:
            body = "xor %eax, %eax\n  ret" if CALLED_AT_START.search(name) else "jmp missing"
            text += f'.text\n.globl "{name}"\n.type "{name}",@function\n"{name}":\n  {body}\n'
    return text


def make_stand_ins(module, folder):
    """Puts one library for all that `module` does without into `folder`, under every name. None where there is nothing."""
    carried, left_out = needed_libraries([module])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if not left_out:
        return
    paths = resolved_paths(module)
    first, *others = sorted(left_out)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "left_out.s"
        source.write_text(stub_source(undefined_symbols(carried.values(), [paths[name] for name in left_out])))
        output_of("gcc", "-shared", "-nostdlib", "-Wl,-soname," + first, "-o", folder / first, source)
    for name in others:
        (folder / name).symlink_to(first)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    make_stand_ins(Path(sys.argv[1]), Path(sys.argv[2]))
