"""The documentation as pages: every link leads somewhere, no script, nothing from the network, no wider than a phone."""

import importlib.machinery
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = 390

try:
    import markdown
except ImportError:
    markdown = None


def make_site():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("make_site", str(ROOT / "tools/make_site"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_site", loader))
    loader.exec_module(module)
    return module


TOOL = make_site()


class Markdown(unittest.TestCase):
    def test_a_heading_is_named_as_code_hosts_name_it(self):
        self.assertEqual(TOOL.slug("As Megatron-Core runs them"), "as-megatron-core-runs-them")
        self.assertEqual(TOOL.slug("The network: how, and why?"), "the-network-how-and-why")

    def test_a_list_below_a_paragraph_becomes_a_list_and_code_stays_code(self):
        self.assertEqual(TOOL.spaced("a:\n- b\n- c"), "a:\n\n- b\n- c")
        self.assertEqual(TOOL.spaced("```\na:\n- b\n```"), "```\na:\n- b\n```")
        self.assertEqual(TOOL.spaced("a:\n| b |\n|---|"), "a:\n\n| b |\n|---|")


class DeadLinks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_missing_page_and_a_missing_heading_are_named(self):
        (self.folder / "a.html").write_text('<a href="b.html#here">x</a><a href="b.html#gone">x</a><a href="c.html">x</a><a href="https://example.org/d">x</a>')
        (self.folder / "b.html").write_text('<h2 id="here">x</h2>')
        self.assertEqual(list(TOOL.dead_links(self.folder)), ["a.html: links to b.html#gone, but b.html has no heading of that name",
                                                              "a.html: links to c.html, which is not there"])


@unittest.skipIf(markdown is None, "no python3-markdown")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        TOOL.Site(cls.folder, markdown).write()
        cls.pages = sorted(cls.folder.rglob("*.html"))

    def test_every_page_of_the_documentation_is_there_and_every_link_leads_somewhere(self):
        for page in (ROOT / "docs").rglob("*.md"):
            self.assertTrue((self.folder / page.relative_to(ROOT)).with_suffix(".html").exists(), page)
        self.assertEqual(list(TOOL.dead_links(self.folder)), [])

    def test_pages_have_no_script_and_ask_nothing_of_the_network(self):
        self.assertNotIn("@import", (self.folder / "site.css").read_text())
        self.assertNotIn("url(", (self.folder / "site.css").read_text())
        for page in self.pages:
            text = page.read_text()
            self.assertNotIn("<script", text, page)
            self.assertIsNone(re.search(r'(?:src|rel="stylesheet" href)="(?:https?:)?//', text), page)

    def test_tables_and_lists_are_no_paragraphs(self):
        for page in self.pages:
            for paragraph in re.findall(r"(?s)<p>(.*?)</p>", page.read_text()):
                self.assertIsNone(re.match(r"\||- ", paragraph), f"{page}: {paragraph[:80]}")

    @unittest.skipIf(CHROMIUM is None, "no Chromium")
    def test_no_page_is_wider_than_a_phone(self):
        names = ["index.html", "docs/reference.html", "docs/architecture.html", "results/topology/sweeps.html"]
        frames = "".join(f'<iframe style="border:0;width:{PHONE}px;height:900px" src="{name}"></iframe>' for name in names)
        (self.folder / "frames.html").write_text(f"<body>{frames}<script>onload = () => document.body.setAttribute('data-wide', "
                                                 "[...document.querySelectorAll('iframe')].map(f => f.contentDocument.documentElement.scrollWidth).join())</script>")
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--hide-scrollbars",
                   f"--user-data-dir={self.folder}/profile", "--virtual-time-budget=4000", "--dump-dom", f"file://{self.folder}/frames.html"]
        dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        widths = re.search(r'data-wide="([\d,]+)"', dom).group(1).split(",")
        self.assertEqual(widths, [str(PHONE)] * len(names))


if __name__ == "__main__":
    unittest.main()
