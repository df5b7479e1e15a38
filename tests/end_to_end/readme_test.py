"""The commands of README.md run, and it shows what they print."""

import re
import shlex
import unittest

from tessera_command import ROOT, EndToEnd

FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")


def fenced_blocks():
    """(language, text) of each fenced block, in order."""
    return FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def commands(block):
    return [line for line in block.splitlines() if line.startswith("./tessera ")]


class Readme(EndToEnd):
    def output_of(self, command):
        result = self.run_tessera(*shlex.split(command, comments=True)[1:], cwd=ROOT)
        self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        return result.stdout

    def test_every_command_runs(self):
        shown = [command for _, block in fenced_blocks() for command in commands(block)]
        self.assertGreaterEqual(len(shown), 2)
        for command in shown:
            self.assertTrue(self.output_of(command))

    def test_a_block_of_text_is_what_the_command_before_it_prints(self):
        blocks = fenced_blocks()
        answered = [(commands(asked)[-1], text) for (_, asked), (language, text) in zip(blocks, blocks[1:])
                    if language == "text"]
        self.assertTrue(answered)
        for command, text in answered:
            self.assertEqual(self.output_of(command), text)


if __name__ == "__main__":
    unittest.main()
