"""The product holds nothing of the laboratory, and finds its program beside itself."""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

from tessera_command import PROGRAM, EndToEnd

BUILD = Path(PROGRAM).resolve().parent.parent


def defined(path):
    """Functions of Tessera that an object file, archive or program defines, by their mangled names."""
    symbols = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in symbols.splitlines() if " T _ZN7tessera" in line}


class Laboratory(EndToEnd):
    def test_the_product_links_none_of_its_functions(self):
        libraries = sorted(BUILD.glob("libtessera_lab_*.a"))
        self.assertEqual(len(libraries), 3)
        of_lab = set.union(*map(defined, libraries))
        self.assertGreater(len(of_lab), 100)
        product = defined(PROGRAM)
        self.assertGreater(len(product), 1000)
        self.assertEqual(product & of_lab, set())
        self.assertGreater(len(defined(BUILD / "bin/tessera-lab") & of_lab), 100)

    def test_a_product_alone_names_what_is_missing(self):
        alone = self.folder / "tessera"
        shutil.copy(PROGRAM, alone)
        result = subprocess.run([alone, "validate", "--models", "x.csv"], capture_output=True, text=True, check=False,
                                env={**os.environ, "TESSERA_HOME": str(Path(__file__).parents[2])})
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("'validate' is a command of the laboratory", result.stderr)
        self.assertIn("tessera-lab", result.stderr)
        listed = subprocess.run([alone, "list", "gpus"], capture_output=True, text=True, check=False,
                                env={**os.environ, "TESSERA_HOME": str(Path(__file__).parents[2])})
        self.assertEqual(listed.returncode, 0, listed.stderr)

    def test_an_installations_weights_stay_as_they_came(self):
        installed = self.folder / "share"
        installed.mkdir()
        for arguments, option in (("train", "--data", "."), "--out"), (("train", "--data", ".", "--ablations"), "--tables"):
            result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False,
                                    env={**os.environ, "TESSERA_HOME": str(installed)})
            self.assertEqual((result.returncode, result.stdout), (3, ""))
            self.assertIn(f"{option}: is not given, and {installed} is an installation", result.stderr)

    def test_both_programs_say_the_same_of_its_commands(self):
        listed = self.answer("--help").partition("Subcommands:")[2]
        whole = re.sub(r"\n {10,}", " ", listed)  # lines that were wrapped
        of_product = dict(line.split(maxsplit=1) for line in whole.splitlines() if line.strip())
        for name in ("predict", "train", "calibrate", "validate", "reproduce"):
            about = " ".join(self.answer(name, "--help").partition("Usage:")[0].split())
            self.assertEqual(about, of_product[name].strip(), name)


if __name__ == "__main__":
    unittest.main()
