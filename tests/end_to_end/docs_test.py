"""Every shell block of the documentation runs, the others name commands and options that exist, and generated pages
are current."""

import os
import re
import shlex
import subprocess
import sys
import unittest

from tessera_command import PROGRAM, ROOT, EndToEnd

FENCE = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def blocks(page, language):
    """Text of the fenced blocks of a page that are marked with `language`."""
    return [text for marked, text in FENCE.findall(page.read_text(encoding="utf-8")) if marked == language]


def commands(text):
    """Arguments of each line that runs the program; continued lines are joined."""
    for line in text.replace("\\\n", " ").splitlines():
        found = re.search(r"(?:^|[ '])(?:\./)?tessera ((?:[a-z-]+ ).*)", line)
        if found:
            yield shlex.split(found.group(1).split("  #")[0].replace("'", ""), comments=True)


class Documentation(EndToEnd):
    def test_the_architecture_has_a_line_for_every_target(self):
        targets = re.findall(r"^tessera_(?:library\(|executable\(\S+ )([\w/]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)
        rows = re.findall(r"^\| `([\w/]+)` \|", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(targets), 30)
        self.assertEqual(sorted(set(targets) - set(rows)), [])

    def checkout(self, name):
        """A folder of this name that looks like a checkout."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "configs").symlink_to(ROOT / "configs")
        (folder / "tessera").symlink_to(PROGRAM)
        return folder

    def run_page(self, page):
        """All blocks, one after the other, in a folder of the page's own."""
        folder = self.checkout(page.stem)
        for text in blocks(page, "sh"):
            self.run_block(page, text, folder)

    def run_block(self, page, text, folder):
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        result = subprocess.run(["bash", "-euc", text], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(result.returncode, 0, f"{page.relative_to(ROOT)}:\n{text}\n{result.stderr}")

    def test_shell_blocks_run(self):
        pages = [page for page in PAGES if blocks(page, "sh")]
        self.assertGreaterEqual(len(pages), 10)
        for page in pages:
            with self.subTest(page=page.name):
                self.run_page(page)

    def test_how_tos_run_in_a_row_in_one_folder(self):
        """As someone does who reads one after the other: no page trips over what another has left."""
        folder = self.checkout("row")
        pages = [ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/howto").glob("*.md"))]
        for page in pages:
            with self.subTest(page=page.name):
                for text in blocks(page, "sh"):
                    self.run_block(page, text, folder)

    def known_options(self, words):
        """Options of the longest command that `words` begin with."""
        count = 2 if self.run_tessera(*words[:2], "--help").returncode == 0 else 1
        while count > 0 and words[count - 1].startswith("-"):
            count -= 1
        return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", self.answer(*words[:count], "--help")))

    def test_commands_that_are_only_shown_exist(self):
        shown = [(page, words) for page in PAGES for text in blocks(page, "") for words in commands(text)]
        self.assertGreaterEqual(len(shown), 5)
        for page, words in shown:
            with self.subTest(page=page.name, command=words):
                options = {word.split("=")[0] for word in words if word.startswith("--")}
                self.assertLessEqual(options, self.known_options(words))

    def test_generated_pages_are_current(self):
        check = subprocess.run([sys.executable, "-B", ROOT / "tools/make_docs", "--check"], capture_output=True, text=True,
                               env={**os.environ, "TESSERA_PROGRAM": str(PROGRAM)}, check=False)
        self.assertEqual((check.returncode, check.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
