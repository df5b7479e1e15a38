"""`tessera serve`: a page of this machine alone, whose server no scenario can end."""

import http.client
import json
import pathlib
import re
import shutil
import signal
import subprocess
import unittest
import urllib.parse

from tessera_command import DATA_PARALLEL, PROGRAM, EndToEnd

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
INTERRUPTED = {0, 130, -signal.SIGINT}


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

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_browser_shows_the_step(self):
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=profile",
                   "--virtual-time-budget=15000", "--dump-dom", self.url]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual([line for line in result.stderr.splitlines() if "CONSOLE" in line], [])
        seconds = self.simulate(DATA_PARALLEL)["step_time_s"]
        self.assertAlmostEqual(float(re.search(r'data-live="([^"]*)"', result.stdout).group(1)), seconds, places=9)


if __name__ == "__main__":
    unittest.main()
