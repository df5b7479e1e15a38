"""Which Debian packages files come from, and under which licences."""

import re
import shutil
from pathlib import Path

from libraries import output_of

LICENCE_TEXTS = Path("/usr/share/common-licenses")


def package_of(file):
    """Name of the package that owns `file`; Debian 12 installs into /usr what packages still list outside."""
    file = str(file)
    for name in (file, file.removeprefix("/usr")):
        try:
            return output_of("dpkg", "-S", name).split(":")[0].split(",")[0]
        except OSError:
            raise
        except Exception:  # dpkg knows no owner under this name
            continue
    raise SystemExit(f"release: no Debian package owns {file}")


def version_of(package):
    return output_of("dpkg-query", "-W", "-f", "${Version}\n", package).splitlines()[0]


def table_rows(markdown):
    """Cells of the rows of every table in a page, without code marks; heads and rules included."""
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            for line in markdown.splitlines() if line.startswith("|")]


def stated_licences(third_party):
    """Package -> licence, as THIRD_PARTY.md states them."""
    licences = {}
    for cells in table_rows(third_party):
        if len(cells) == 5:
            licences.update({package.strip(): cells[3] for package in cells[1].split(",")})
    return licences


def header_packages(third_party):
    """Packages whose headers are compiled into the program."""
    return [cells[1] for cells in table_rows(third_party) if len(cells) == 5 and cells[4] == "headers"]


def copy_licences(packages, folder):
    """The copyright file of every package, and the common licences that those refer to."""
    folder.mkdir(parents=True)
    wanted = set()
    for package in packages:
        text = (Path("/usr/share/doc") / package / "copyright").read_text(encoding="utf-8", errors="replace")
        (folder / f"{package}.txt").write_text(text, encoding="utf-8")
        wanted.update(name.rstrip(".") for name in re.findall(r"common-licenses/([A-Za-z0-9.+-]+)", text))
    for name in sorted(wanted):
        if (LICENCE_TEXTS / name).is_file():
            shutil.copyfile(LICENCE_TEXTS / name, folder / name)
