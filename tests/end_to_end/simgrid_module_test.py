"""SimGrid is loaded by the steps that need it, and by nothing else."""

import os
import shutil
import subprocess

from tessera_command import PROGRAM, ROOT, EndToEnd

MODULE = "tessera-simgrid.so"
FULL_LINKS = "mixtral-8x7b_64xh100_tp2_pp4_ep8_bf16"


class SimGridModule(EndToEnd):
    def loaded_by(self, scenario):
        """What the loader says of the files that it reads."""
        result = subprocess.run([PROGRAM, "simulate", scenario], capture_output=True, text=True, check=True,
                                env={**os.environ, "LD_DEBUG": "files"})
        return result.stderr

    def test_a_step_whose_links_have_room_does_without(self):
        loaded = self.loaded_by("gpt2-large_4xh100_dp4")
        self.assertIn("libprotobuf", loaded)
        self.assertNotIn(MODULE, loaded)
        self.assertNotIn("libsimgrid", loaded)

    def test_a_step_that_fills_a_link_has_it(self):
        loaded = self.loaded_by(FULL_LINKS)
        self.assertIn(MODULE, loaded)
        self.assertIn("libsimgrid", loaded)
        self.assertNotIn("libgsl", loaded)  # below ns-3, for which others stand in

    def simulate_with(self, make_module):
        """A copy of the program beside a module that `make_module` writes to a path."""
        program, module = self.folder / "bin/tessera", self.folder / "lib/tessera" / MODULE
        for file in program, module:
            file.parent.mkdir(parents=True)
        shutil.copy(PROGRAM, program)
        make_module(module)
        result = subprocess.run([program, "simulate", FULL_LINKS], capture_output=True, text=True, check=False,
                                env={**os.environ, "TESSERA_HOME": str(ROOT)})
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("lib/tessera", result.stderr)
        return result.stderr, module

    def test_a_module_that_cannot_be_loaded_is_named(self):
        said, module = self.simulate_with(lambda module: module.touch())
        self.assertIn(f"{MODULE}: cannot be loaded: {module}: file too short", said)

    def test_a_module_of_another_version_is_refused(self):
        def older(module):
            source = self.folder / "older.c"
            source.write_text('const char tessera_module_version[] = "0.0.1";\n')
            subprocess.run(["cc", "-shared", "-o", module, source], check=True)

        said, _ = self.simulate_with(older)
        self.assertIn(f"{MODULE}: is of version 0.0.1, the program of ", said)
