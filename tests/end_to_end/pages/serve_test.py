"""`tessera serve`: a page of this machine alone, whose server no scenario can end."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tessera_command import DATA_PARALLEL, PROGRAM, ROOT, EndToEnd

sys.path.insert(0, str(ROOT / "tools"))
from browser import CHROMIUM, Browser  # noqa: E402, found through the line above

INTERRUPTED = {0, 130, -signal.SIGINT}
SHOWN = "document.documentElement.getAttribute('data-live')"


class EmptyPage(BaseHTTPRequestHandler):
    """Another page of this machine: of another origin, as its port is another."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *_):
        pass



class Serve(EndToEnd):
    def setUp(self):
        super().setUp()
        command = [PROGRAM, "serve", DATA_PARALLEL]
        self.server = subprocess.Popen(list(map(str, command)), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.url = re.search(r"http://\S+", self.server.stdout.readline()).group(0)
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.token = parts.port, urllib.parse.parse_qs(parts.query)["token"][0]

    def end(self):
        if self.server.poll() is None:
            self.server.kill()
        self.server.wait(timeout=20)
        self.server.stdout.close()

    def get(self, path, token=None, method="GET", host=None, **headers):
        """(status, headers, body) of a request; `token=""` sends none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", f"127.0.0.1:{self.port}" if host is None else host)
        headers = {"X-Tessera-Token": self.token if token is None else token, **headers}
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, body

    def step(self, *assignments):
        status, _, body = self.get("/step?" + urllib.parse.urlencode([("set", assignment) for assignment in assignments]))
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_it_listens_on_this_machine_alone_and_wants_its_token(self):
        self.assertTrue(self.url.startswith("http://127.0.0.1:"), self.url)
        self.assertGreaterEqual(len(self.token), 32)
        sockets = pathlib.Path("/proc/net/tcp").read_text().splitlines()
        listening = {line.split()[1] for line in sockets if line.split()[3] == "0A"}
        self.assertIn(f"0100007F:{self.port:04X}", listening, "127.0.0.1, not 0.0.0.0")
        for token in ("", "0" * 32, self.token[:-1], self.token + "0"):
            for path in ("/", "/step", "/report", "/scenario.yaml"):
                status, _, body = self.get(path, token)
                self.assertEqual(status, 403, path)
                self.assertNotIn("<html", body)
        self.assertEqual(self.get("/?token=" + self.token, "")[0], 200)

    def test_other_hosts_and_other_pages_are_refused(self):
        for host in ("evil.example", f"evil.example:{self.port}", "127.0.0.1", f"127.0.0.1.evil.example:{self.port}", ""):
            self.assertEqual(self.get("/step", host=host)[0], 403, host)
        self.assertEqual(self.get("/step", host=f"localhost:{self.port}")[0], 200)
        for origin in ("http://evil.example", "null", f"https://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.port + 1}"):
            self.assertEqual(self.get("/step", Origin=origin)[0], 403, origin)
        self.assertEqual(self.get("/step", Origin=f"http://127.0.0.1:{self.port}")[0], 200)
        self.assertEqual(self.get("/step", Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(self.get("/step", method="POST")[0], 405)
        self.assertEqual(self.get("/../etc/passwd")[0], 404)

    def test_it_answers_what_simulate_answers(self):
        for assignments in ((), ("training.micro_batch=2", "training.global_batch=8")):
            answer = self.step(*assignments)["step"]
            self.assertEqual(answer["headline"]["time"]["seconds"], self.simulate(DATA_PARALLEL, *assignments)["step_time_s"])
            self.assertTrue(answer["timeline"]["rows"] and answer["memory"]["ranks"])
        _, headers, text = self.get("/scenario.yaml?set=training.micro_batch%3D2&set=training.global_batch%3D8")
        self.assertIn("attachment", headers["Content-Disposition"])
        self.plant("saved.yaml", text)
        self.assertEqual(self.simulate("saved.yaml")["step_time_s"], answer["headline"]["time"]["seconds"])
        self.assertIn("Content-Security-Policy", self.get("/report")[2])

    def test_what_is_wrong_is_said_with_its_field_and_remedy(self):
        problems = self.step("parallelism.tensor=3")["problems"]
        self.assertTrue(any("parallelism.tensor" in problem["where"] and problem["hint"] for problem in problems), problems)
        for attack in ("model=/etc/passwd", "cluster=../x.yaml", "simulation.time_limit=1s", "name=x", "training.micro_batch=1e9", "nothing"):
            problems = self.step(attack)["problems"]
            self.assertRegex(problems[0]["what"], "is no field of this page|is none of the values", attack)
        self.assertEqual(self.get("/nowhere")[0], 404)
        self.assertIn("step", self.step(), "the server goes on")

    def test_a_silent_connection_keeps_nobody_waiting(self):
        silent = [http.client.HTTPConnection("127.0.0.1", self.port) for _ in range(3)]
        for connection in silent:
            connection.connect()
        self.assertIn("step", self.step())
        for connection in silent:
            connection.close()

    def test_every_value_of_a_choice_is_known_to_scenarios(self):
        page = self.get("/")[2]
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
        for field in data["live"]["fields"]:
            if field["kind"] == "choice" and field["path"] not in ("model", "cluster"):
                for value in field["values"]:
                    problems = self.step(f"{field['path']}={value}").get("problems", [])
                    self.assertFalse([p for p in problems if "accepted" in p["what"] + p["hint"] or "unknown" in p["what"]], (value, problems))

    def test_ctrl_c_ends_it(self):
        self.server.send_signal(signal.SIGINT)
        self.assertIn(self.server.wait(timeout=20), INTERRUPTED)

    def opened(self):
        """The page in a browser, with its first step."""
        browser = Browser(self.folder)
        self.addCleanup(browser.close)
        page = browser.page()
        page.open(self.url)
        page.wait(SHOWN)
        return page

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_slider_moves_and_the_step_follows(self):
        page = self.opened()
        self.assertAlmostEqual(float(page.evaluate(SHOWN)), self.simulate(DATA_PARALLEL)["step_time_s"], places=9)
        before = page.evaluate(SHOWN)
        page.evaluate("document.querySelector('input[aria-label=sequence]').focus()")
        page.key("ArrowLeft")
        page.wait(f"{SHOWN} !== '{before}'")
        shorter = self.simulate(DATA_PARALLEL, "training.sequence_length=512")
        self.assertAlmostEqual(float(page.evaluate(SHOWN)), shorter["step_time_s"], places=9)
        headline = page.evaluate("document.querySelector('.hero .figure').innerText")
        self.assertAlmostEqual(float(re.match(r"[\d.]+", headline).group(0)), 1e3 * shorter["step_time_s"], delta=1)
        page.evaluate("document.querySelector('a[download]').click()")
        self.assert_saved_is(shorter)
        self.assertEqual(page.complaints(), [])
        self.assertTrue(all(url.startswith(f"http://127.0.0.1:{self.port}/") for url, _ in page.responses()), page.responses())

    def assert_saved_is(self, expected):
        """What the browser saved is the scenario of the step that was shown."""
        saved = self.folder / "scenario.yaml"
        end = time.monotonic() + 60
        while not saved.exists():
            self.assertLess(time.monotonic(), end, "nothing was saved")
            time.sleep(0.05)
        self.assertEqual(self.simulate(saved)["step_time_s"], expected["step_time_s"])

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_what_is_wrong_is_shown_over_the_step_before(self):
        page = self.opened()
        page.evaluate("document.querySelector('input[type=checkbox]').click(); document.querySelector('input[aria-label=tensor]').focus()")
        for _ in range(4):
            page.key("ArrowRight")  # 16 GPUs a layer, of 4
        self.assertIn("parallelism.tensor", page.wait("document.querySelector('p.problem') && document.querySelector('p.problem').innerText"))
        self.assertTrue(page.evaluate("document.querySelector('.stale') !== null"))

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_browser_gets_nothing_for_another_page_or_without_the_token(self):
        page = self.opened()
        other = ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        page.open(f"http://127.0.0.1:{other.server_port}/")
        asked = json.dumps(f"http://127.0.0.1:{self.port}/step?token={self.token}")
        for how in ("{}", "{mode: 'no-cors'}"):
            self.assertEqual(page.evaluate(f"fetch({asked}, {how}).then(() => 'read', () => 'refused')"), "refused")
        self.assert_refused(page, 2)
        page.open(f"http://127.0.0.1:{self.port}/")
        self.assertIn("token", page.evaluate("document.body.innerText"))
        self.assertEqual(page.responses()[-1][1], 403)

    def assert_refused(self, page, times):
        """The server said no so often, not the browser alone."""
        end = time.monotonic() + 20
        refused = []
        while len(refused) < times and time.monotonic() < end:
            page.evaluate("0")  # what the network did is told meanwhile
            refused = [event for event in page.events if event["method"] == "Network.responseReceivedExtraInfo" and event["params"]["statusCode"] == 403]
        self.assertEqual(len(refused), times)

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_the_page_is_as_wide_as_a_phone(self):
        page = self.opened()
        page.resize(390, 800)
        page.open(self.url)
        page.wait(SHOWN)
        self.assertEqual(page.evaluate("document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    unittest.main()
