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

    def test_a_module_that_cannot_be_loaded_is_named(self):
        program, module = self.folder / "bin/tessera", self.folder / "lib/tessera" / MODULE
        for file in program, module:
            file.parent.mkdir(parents=True)
        shutil.copy(PROGRAM, program)
        module.touch()
        result = subprocess.run([program, "simulate", FULL_LINKS], capture_output=True, text=True, check=False,
                                env={**os.environ, "TESSERA_HOME": str(ROOT)})
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn(f"{MODULE}: cannot be loaded: {module}: file too short", result.stderr)
        self.assertIn("lib/tessera", result.stderr)
