"""Reports without a mouse: keys reach every control, sort tables and choose slices; tools/page_audit.js finds what they do not reach."""

import sys
import unittest

from tessera_command import PIPELINE, ROOT, EndToEnd

sys.path.insert(0, str(ROOT / "tools"))
from browser import CHROMIUM, Browser  # noqa: E402, found through the line above

AUDIT = ROOT / "tools" / "page_audit.js"
# What an audit has to find, each once.
FAULTY = """<!doctype html><meta name="viewport" content="width=device-width"><body style="margin: 0; background: #fff">
<p style="color: #999">too faint</p><p style="color: #555">dark enough</p>
<div style="width: 40px; overflow: hidden; white-space: nowrap">a text longer than its box</div>
<div style="cursor: pointer">click</div><button></button><div style="width: 2000px">wide</div>"""


@unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
class Keyboard(EndToEnd):
    def opened(self, file):
        browser = Browser(self.folder)
        self.addCleanup(browser.close)
        page = browser.page()
        page.resize(1400, 1000)
        page.open(f"file://{self.folder / file}")
        return page

    def report(self):
        self.answer("explain-step", PIPELINE, "--report", "step.html")
        page = self.opened("step.html")
        page.wait("document.documentElement.getAttribute('data-ready')")
        return page

    def focus(self, page, script):
        """Presses Tab until `script`, of the element `at` that has the focus, is true."""
        for _ in range(300):
            page.key("Tab")
            if page.evaluate(f"((at) => {script})(document.activeElement)"):
                return
        self.fail(f"no number of tabs reaches {script}")

    def test_a_head_of_a_table_sorts_it_up_and_down(self):
        page = self.report()
        self.focus(page, "at.closest('th') !== null && at.closest('table').rows.length > 2")
        cells = "[...at.closest('table').tBodies[0].rows].map((row) => row.cells[at.closest('th').cellIndex].textContent)"
        found = {}
        for way in ("ascending", "descending"):
            page.key("Enter")
            self.assertEqual(page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')"), way)
            found[way] = page.evaluate(f"((at) => {cells})(document.activeElement)")
        self.assertEqual(found["descending"], found["ascending"][::-1])

    def test_arrows_choose_slices_and_say_what_they_are(self):
        page = self.report()
        self.focus(page, "at.tagName === 'CANVAS'")
        said = "document.querySelector('.details').textContent"
        seen = [page.evaluate(said)]
        for _ in range(3):
            page.key("ArrowRight")
            seen.append(page.evaluate(said))
        self.assertEqual(len(set(seen)), 4, seen)
        page.key("ArrowLeft")
        self.assertEqual(page.evaluate(said), seen[2])

    def test_space_opens_what_is_folded(self):
        page = self.report()
        self.focus(page, "at.tagName === 'SUMMARY' && !at.parentElement.open")
        page.key("Space")
        self.assertTrue(page.evaluate("document.activeElement.parentElement.open"))
        self.assertEqual(page.complaints(), [])

    def test_an_audit_finds_each_fault(self):
        self.plant("faulty.html", FAULTY)
        found = self.opened("faulty.html").evaluate(AUDIT.read_text())
        self.assertEqual(found, ["2000 pixels wide in a window of 1400", 'contrast 2.85 of "too faint" in p', '"a text longer than its box" is cut in div',
                                 "no key reaches div", "button has no name"])


if __name__ == "__main__":
    unittest.main()
