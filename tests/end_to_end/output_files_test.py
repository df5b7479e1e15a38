"""Answers and files arrive whole, or the run fails and leaves nothing behind."""

import os
import resource
import subprocess
import unittest

from tessera_command import DATA_PARALLEL, EndToEnd

BAD_INPUT = 3
OUTPUTS = {"--trace": "trace.json.gz", "--picture": "picture.svg", "--resolved": "resolved.yaml"}


def close_stdout():
    os.close(1)


def full_disk():
    """Files end at 1 KiB. Python ignores SIGXFSZ, and a child keeps that, so writes fail as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


class OutputFiles(EndToEnd):
    def test_only_the_files_that_were_asked_for_appear(self):
        for option, name in OUTPUTS.items():
            self.answer("simulate", DATA_PARALLEL, option, name)
        self.assertEqual(self.files(), sorted(OUTPUTS.values()))

    def test_an_unwritable_path_is_named_and_nothing_is_printed(self):
        for option, name in OUTPUTS.items():
            self.assert_fails(BAD_INPUT, f"missing/{name}: cannot be written: No such file or directory", "simulate",
                              DATA_PARALLEL, option, f"missing/{name}")
        (self.folder / "folder.json").mkdir()
        self.assert_fails(BAD_INPUT, "folder.json: cannot be written", "simulate", DATA_PARALLEL, "--trace",
                          "folder.json")
        self.assertEqual(self.files(), ["folder.json"])

    def test_a_full_disk_leaves_the_old_file_and_no_half_of_a_new_one(self):
        self.plant("trace.json", "old")
        self.assert_fails(BAD_INPUT, "trace.json: cannot be written", "simulate", DATA_PARALLEL, "--trace",
                          "trace.json", preexec_fn=full_disk, restore_signals=False)
        self.assertEqual(self.files(), ["trace.json"])
        self.assertEqual((self.folder / "trace.json").read_text(), "old")

    def test_a_full_stdout_is_an_error_that_names_the_reason(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assert_fails(BAD_INPUT, "error: stdout: cannot be written: No space left on device", "simulate",
                              DATA_PARALLEL, stdout=full)

    def test_a_closed_stdout_is_an_error_and_no_file_takes_its_place(self):
        self.assert_fails(BAD_INPUT, "error: stdout: cannot be written", "simulate", DATA_PARALLEL, "--trace",
                          "trace.json", stdout=subprocess.DEVNULL, preexec_fn=close_stdout)
        self.answer("simulate", DATA_PARALLEL, "--trace", "same.json")
        self.assertEqual((self.folder / "trace.json").read_text(), (self.folder / "same.json").read_text())

    def test_a_reader_that_leaves_early_ends_the_run(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as pipe:
            result = self.run_tessera("list", "gpus", stdout=pipe)
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    unittest.main()
