"""`--report FILE.html`: one file that asks for nothing, in a browser where there is one."""

import base64
import hashlib
import html
import html.parser
import json
import random
import re
import shutil
import subprocess
import time
import unittest

import replay_test
from tessera_command import DATA_PARALLEL, PIPELINE, EndToEnd

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NODE = shutil.which("node")
ATTACK = "</script><img src=x onerror=document.title='broken'>"
DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.S)
SCRIPT = re.compile(r"<script>(.*?)</script>", re.S)
SLICES = 200_000

# Draws rows of 200,000 slices of which most are thinner than a pixel; the script has no document here.
NODE_TEST = """
const fs = require("fs"), vm = require("vm"), assert = require("assert");
vm.runInThisContext(fs.readFileSync(process.argv[1], "utf8") + "; globalThis.api = {decodeRows, visibleSlices, firstAbove}");
const row = {gaps: [], lengths: []};
for (let i = 0; i < 200000; ++i) { row.gaps.push(i % 3); row.lengths.push(1 + i % 50); }
const timeline = {rows: [row]};
api.decodeRows(timeline);
const whole = row.end[row.end.length - 1], pixel = whole / 1200;
let visited = 0, at = 0;
api.visibleSlices(row, 0, whole, pixel, (i, begin, end) => {
  ++visited;
  assert(begin >= at - pixel && end >= begin);
  assert(begin - at <= 3 * pixel, "a gap that is none");
  at = end;
});
assert(visited <= 2400 && visited >= 600, "visited " + visited);
visited = 0;
api.visibleSlices(row, whole / 2, whole / 2 + 1e-6, 1e-9, () => ++visited);
assert(visited > 10 && visited < 1000, "visited " + visited);
assert.deepStrictEqual([0, 1, 2.5, 9].map((x) => api.firstAbove([1, 2, 3], x)), [0, 1, 2, 3]);
"""


class Elements(html.parser.HTMLParser):
    """Names and attributes of all elements."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def many_slices():
    """A document with a timeline of 200,000 slices on 40 rows."""
    numbers = random.Random(7)
    rows = []
    for number in range(40):
        lengths = [numbers.randrange(1, 2000) for _ in range(SLICES // 40)]
        rows.append({"name": f"GPU {number} compute", "gaps": [numbers.randrange(0, 50) for _ in lengths], "lengths": lengths,
                     "kinds": [numbers.randrange(9) for _ in lengths], "names": [numbers.randrange(4) for _ in lengths],
                     "micro_batches": [-1] * len(lengths)})
    step = max(sum(row["gaps"]) + sum(row["lengths"]) for row in rows) * 1e-9
    return {"title": ATTACK, "timeline": {"step_time_s": step, "kinds": [ATTACK] * 9, "stories": {},
                                          "names": [ATTACK, "layer.forward", "layer.backward", "b"], "rows": rows,
                                          "path": {"begin": [0], "end": [step], "row": [3]}}}


class HtmlReport(EndToEnd):
    def report(self, *arguments):
        self.answer(*arguments, "--report", "report.html")
        return (self.folder / "report.html").read_text()

    def assert_self_contained(self, page):
        elements = Elements(page).found
        self.assertEqual({tag for tag, _ in elements}, {"html", "head", "meta", "title", "style", "body", "main", "noscript", "script"})
        self.assertFalse([attributes for _, attributes in elements if {"src", "href", "style", "onload"} & set(attributes)])
        policy = next(attributes["content"] for _, attributes in elements if "http-equiv" in attributes)
        digests = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
                           for script in SCRIPT.findall(page))
        self.assertTrue(policy.startswith(f"default-src 'none'; script-src {digests}; style-src 'sha256-"), policy)
        self.assertNotIn("unsafe", policy)

    def replay_of_foreign_names(self):
        """The report of a trace whose nodes, groups and files have names that would be markup."""
        collective = {"comm_type": 0, "comm_size": 1 << 20, "pg_name": ATTACK}
        for rank in range(2):
            nodes = (replay_test.node(1, replay_test.COMPUTE, 50, name="layer.forward " + ATTACK),
                     replay_test.node(2, replay_test.COLLECTIVE, after=[1], name=ATTACK, **collective))
            (self.folder / f"<img onerror=x>.{rank}.et").write_bytes(replay_test.trace(*nodes))
        self.plant("<img onerror=x>.groups.json", json.dumps({ATTACK: [0, 1]}))
        return self.report("replay", "<img onerror=x>", "--cluster", "hgx-h100-4")

    def browse(self, page, fragment=""):
        """The page's elements after its script ran, and what the browser logged."""
        path = self.plant("browsed.html", page)
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--user-data-dir=profile",
                   "--dump-dom", f"file://{path}{fragment}"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        self.assertTrue("data-ready" in result.stdout, result.stderr[-2000:])
        # Reading pixels back is how the test waits for the drawing.
        return result.stdout, [line for line in result.stderr.splitlines()
                               if "CONSOLE" in line and "willReadFrequently" not in line]

    def test_every_command_writes_a_page_that_asks_for_nothing(self):
        self.assert_self_contained(self.report("simulate", PIPELINE))
        self.assert_self_contained(self.report("compare", PIPELINE, DATA_PARALLEL))
        self.plant("runs.csv", "id,gpu,n_gpus,precision,family,layers,hidden,heads,vocab,seq_len,global_batch,step_time_s\n"
                   f"{ATTACK},A100-SXM4-80GB,1,bf16,gpt,2,256,4,1024,128,2,0.01\n")
        page = self.report("validate", "runs.csv")
        self.assert_self_contained(page)
        self.assertNotIn("<img", page)

    def test_equal_runs_give_equal_bytes(self):
        self.assertEqual(self.report("simulate", PIPELINE), self.report("simulate", PIPELINE))

    def test_memory_by_category_adds_up_to_the_peak(self):
        page = self.report("simulate", PIPELINE, "--set", "training.recompute=full")
        data = json.loads(DATA.search(page).group(2))
        for rank in data["memory"]["ranks"]:
            parts = rank["categories"]
            self.assertEqual(parts["times_s"], sorted(parts["times_s"]))
            self.assertEqual(max(map(sum, zip(*parts["bytes"]))), rank["peak_bytes"])
            self.assertEqual(set(rank["marks"]["kind"]), {2}, "layers are computed again, nothing is copied")
        self.assertTrue(all(point["rate"] <= data["roofline"]["peak"] for point in data["roofline"]["points"]
                            if point["kind"] == "gemm"))

    def test_the_flame_holds_every_kernel_once(self):
        """Phases are the sums of their parts, and all of them what the kernels of a GPU take."""
        page = self.report("simulate", DATA_PARALLEL)
        data = json.loads(DATA.search(page).group(2))
        phases = data["flame"]["phases"]
        self.assertEqual([phase["name"] for phase in phases], ["forward", "loss", "backward", "gradient_reduction", "optimizer"])
        for phase in phases:
            for whole, parts in [(phase, phase["segments"]), *((segment, segment["kernels"]) for segment in phase["segments"])]:
                self.assertAlmostEqual(whole["seconds"], sum(part["seconds"] for part in parts), delta=1e-12)
                self.assertEqual([part["seconds"] for part in parts], sorted((part["seconds"] for part in parts), reverse=True))
        kinds = next(table for table in data["tables"] if table["title"] == "Kernels by kind")
        self.assertAlmostEqual(1e3 * sum(phase["seconds"] for phase in phases), sum(row[1] for row in kinds["rows"]), delta=0.01)

    def test_links_carry_what_the_step_sends(self):
        page = self.report("simulate", PIPELINE)
        self.assertEqual(page, self.report("simulate", PIPELINE), "in the same order, too")
        links = json.loads(DATA.search(page).group(2))["links"]
        carried = {row["name"]: sum(row["use"]) * row["rate"] * links["part_s"] for row in links["rows"]}
        means = [sum(row["use"]) for row in links["rows"]]
        for busy, next_one in zip(means, means[1:]):
            self.assertGreaterEqual(busy, next_one - 1e-4)
        program = self.answer("show", "program", PIPELINE)
        sent = sum(int(size) for size in re.findall(r"pipeline_send +send .* to stage \d+, (\d+) B", program))
        self.assertGreater(sent, 0)
        neighbours = [f"node0/gpu{i}->gpu{j}" for i in range(4) for j in range(4) if abs(i - j) == 1]
        self.assertAlmostEqual(sum(carried[name] for name in neighbours) / sent, 1, delta=1e-3)
        self.assertGreater(carried["node0/gpu0->gpu3"], 0, "the gradients of the tied embedding")
        self.assertTrue(all(0 <= use <= 1 for row in links["rows"] for use in row["use"]))
        drawn = [row for line in links["drawing"]["lines"] for row in line["rows"]]
        self.assertEqual(sorted(drawn), list(range(len(links["rows"]))), "every link that was used is drawn")

    def test_a_comparison_puts_both_timelines_on_one_axis(self):
        data = json.loads(DATA.search(self.report("compare", PIPELINE, DATA_PARALLEL)).group(2))
        sides = {row["name"].split(":")[0] for row in data["timeline"]["rows"]}
        self.assertEqual(sides, {"A", "B"})
        times = {end["name"]: end["at"] for end in data["timeline"]["ends"]}
        self.assertEqual(data["timeline"]["step_time_s"], max(times.values()))
        steps = sum(step["seconds"] for step in data["waterfall"]["steps"])
        self.assertAlmostEqual(steps, times["B ends"] - times["A ends"], places=6)
        for row in data["timeline"]["rows"]:
            self.assertLess(max(row["names"]), len(data["timeline"]["names"]))
            end = (sum(row["gaps"]) + sum(row["lengths"])) * 1e-9
            self.assertLessEqual(end, times[row["name"][0] + " ends"] + 1e-6)
        memory = data["memory"]["ranks"][0]
        self.assertEqual(max(memory["bytes"]), memory["peak_bytes"])
        self.assertIn("before", memory, "the memory of A lies over that of B")

    def test_a_name_of_the_user_is_data(self):
        page = self.report("simulate", PIPELINE, "--set", f"name={ATTACK}")
        self.assert_self_contained(page)
        self.assertIn(ATTACK, json.loads(DATA.search(page).group(2))["title"])

    @unittest.skipUnless(NODE, "there is no node on this machine")
    def test_drawing_visits_a_slice_or_two_per_pixel(self):
        script = SCRIPT.findall(self.report("simulate", PIPELINE))[-1]
        path = self.plant("page.js", script)
        result = subprocess.run([NODE, "-e", NODE_TEST, str(path)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_browser_draws_it_without_a_complaint(self):
        pages = [self.report("simulate", PIPELINE, "--set", f"name={ATTACK}"), self.report("compare", PIPELINE, DATA_PARALLEL),
                 self.replay_of_foreign_names()]
        for page in pages:
            dom, complaints = self.browse(page, "#measure")
            self.assertEqual(complaints, [])
            self.assertFalse("<img" in dom)
            self.assertTrue("<h2>Provenance</h2>" in dom)
        dom, _ = self.browse(pages[0], "#measure")
        self.assertIn('data-stepped="1"', dom, "an arrow key chooses the next slice")
        self.assertGreater(int(re.search(r'data-found="(\d+)"', dom).group(1)), 0)
        self.assertTrue("layer.forward</strong>" in dom, "a click shows the op")
        self.assertTrue("<h2>Links</h2>" in dom)

    def charts_of(self, page):
        """What report.html#measure finds about every chart, and all elements."""
        if len(SCRIPT.findall(page)) < 2:
            self.skipTest("built without charts: npm is missing, or its registry is out of reach")
        self.assert_self_contained(page)
        dom, complaints = self.browse(page, "#measure")
        self.assertEqual(complaints, [])
        self.assertNotIn("<img", dom)
        charts = json.loads(html.unescape(re.search(r'data-charts="([^"]*)"', dom).group(1)))
        for chart in charts:
            self.assertGreater(chart["shapes"], 10, chart["name"])
            self.assertTrue(chart.get("moved", True), f"the zoom of {chart['name']}")
        return {chart["name"]: chart for chart in charts}, dom

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_the_charts_of_a_step_zoom_and_explain_what_the_pointer_is_over(self):
        page = self.report("simulate", PIPELINE, "--set", f"name={ATTACK}", "--set", "training.recompute=full")
        charts, dom = self.charts_of(page)
        self.assertEqual(list(charts), ["memory over time", "use of links over time", "kernels under the roofline"])
        names = [series["name"] for series in charts["memory over time"]["series"]]
        self.assertEqual((names[:3], names[-1]), (["parameters", "gradients", "optimizer"], "computes again"))
        self.assertRegex(charts["memory over time"]["tip"][0], r"^0: [\d.]+ GiB$")
        data = json.loads(DATA.search(page).group(2))
        roofline = charts["kernels under the roofline"]["series"]
        self.assertEqual(sum(series["points"] for series in roofline if series["type"] == "scatter"), len(data["roofline"]["points"]))
        self.assertRegex(charts["kernels under the roofline"]["tip"][1], r"TFLOP/s, [\d.]+ FLOP per byte$")
        alike = {json.dumps([row["technology"], row["rate"], row["use"]]): row["use"] for row in data["links"]["rows"]}
        busy = sum(use > 0 for one in alike.values() for use in one)
        self.assertEqual(charts["use of links over time"]["series"], [{"type": "heatmap", "points": busy}])
        self.assertRegex(dom, r'data-link="node0/\S+ \(NVLink, [\d.]+ of [\d.]+ GB/s promised\): [\d.]+ % from ')
        heat = re.search(r'data-heat="([\d ]+)"', dom).group(1).split()
        self.assertNotEqual(heat[:3], ["233", "233", "233"], "the busiest part of the busiest link is coloured")

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_the_peak_is_marked_where_it_is_however_short_the_step(self):
        """A chain of operators of some nanoseconds; marks of a chart are rounded to hundredths where nobody forbids it."""
        count = 12  # layers, a loss, and their backward passes
        graph = {"dur": [4] * count + [1] + [8] * count, "size": [4] * count + [2] * (count + 1), "work": [0] * (2 * count + 1), "keep": [2 * count],
                 "deps": [[]] + [[i] for i in range(count)] + [[count + i, count - 1 - i] for i in range(count)], "M": 24}
        self.plant("chain.json", json.dumps({"instances": [graph]}))
        page = self.report("plan", "graph", "chain.json", "--budget", 24, "--no-swap")
        memory = json.loads(DATA.search(page).group(2))["memory"]
        rank = memory["ranks"][0]
        charts, _ = self.charts_of(page)
        expected = rank["times_s"][rank["bytes"].index(max(rank["bytes"]))]
        self.assertGreater(expected, 0)
        self.assertAlmostEqual(charts["memory over time"]["peak"] / expected, 1, delta=0.02)

    def test_a_replayed_step_has_no_figures_that_traces_do_not_know(self):
        data = json.loads(DATA.search(self.replay_of_foreign_names()).group(2))
        self.assertEqual([entry["name"] for entry in data["summary"]], ["step time [ms]", "exposed communication [ms]"])
        for part in ("flame", "memory"):
            self.assertNotIn(part, data)

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_points_are_chosen_by_clicks_and_ranges(self):
        page = self.report("plan", "parallelism", "gpt3-xl", "hgx-h100-4", "--global-batch", 16, "--sequence-length", 512)
        points = json.loads(DATA.search(page).group(2))["points"]
        charts, dom = self.charts_of(page)
        series = charts["two figures of each point"]["series"]
        self.assertEqual([(one["name"], one["type"]) for one in series], [("points", "scatter"), ("Pareto front", "line")])
        self.assertEqual(series[0]["points"], len(points["rows"]))
        self.assertIn(points["labels"][0], charts["two figures of each point"]["tip"])
        self.assertEqual([one["points"] for one in charts["all figures of each point"]["series"]], [len(points["rows"]), 1])
        found = dict(re.findall(r'data-(chosen|within|expected-within)="([^"]*)"', dom))
        self.assertEqual(int(found["chosen"]), len(points["rows"]) - 1, "a click chooses the point below the pointer")
        self.assertEqual(found["within"], f"{found['expected-within']} of {len(points['rows'])} points are in the ranges")

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_sweep_is_a_map_with_a_mask_for_what_does_not_fit(self):
        self.plant("sweep.yaml", f"name: s\nbase: {PIPELINE}\nset: {{parallelism.pipeline: 1, parallelism.data: 4}}\naxes:\n"
                   "  training.micro_batch: [1, 8]\n  training.recompute: [none, full]\n  training.global_batch: [32, 64]\n")
        self.assertEqual(self.run_tessera("sweep", "sweep.yaml", "--out", "out", "--report", "report.html").returncode, 0)
        page = (self.folder / "report.html").read_text()
        points = json.loads(DATA.search(page).group(2))["points"]
        self.assertEqual([column["name"] for column in points["columns"]][:4], ["micro batch", "recompute", "global batch", "step time [ms]"])
        fits = points["fits"]
        cells = {}
        for row in points["rows"]:
            cells.setdefault((row[0], row[1]), []).append(row[fits] == "fits")
        fitting = sum(any(cell) for cell in cells.values())
        self.assertGreater(len(cells), fitting, "eight sequences without recomputation do not fit into 80 GiB")
        charts, dom = self.charts_of(page)
        self.assertIn(f'data-cells="{fitting} {len(cells) - fitting}"', dom)
        fronts = [one["name"] for one in charts["two figures of each point"]["series"]][1:]
        self.assertEqual(fronts, ["Pareto front of global batch 32", "Pareto front of global batch 64"])
        self.assertIn("ahead in tokens/s/GPU of", dom, "the best row is explained beside the next")

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_memory_plan_is_drawn_over_what_there_was_without_it(self):
        charts, dom = self.charts_of(self.report("plan", "memory", PIPELINE, "--budget", "20GiB", "--fast", "--set", f"name={ATTACK}"))
        names = [series["name"] for series in charts["memory over time"]["series"]]
        self.assertIn("without the plan", names)
        self.assertIn("computes again", names)
        self.assertRegex(charts["memory over time"]["tip"][-1], r"^without the plan [\d.]+ GiB$")
        self.assertTrue("<h2>What runs again</h2>" in dom)

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_measured_rows_are_named(self):
        self.plant("runs.csv", "id,source,gpu,n_gpus,precision,family,layers,hidden,heads,vocab,seq_len,global_batch,step_time_s\n"
                   f"{ATTACK},{ATTACK},A100-SXM4-80GB,1,bf16,gpt,2,256,4,1024,128,2,0.01\n")
        charts, _ = self.charts_of(self.report("validate", "runs.csv"))
        self.assertIn(f"{ATTACK} (", charts["Measured and simulated"]["tip"][0], "as text on a canvas")

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_a_page_without_the_library_says_what_is_missing(self):
        page = self.report("simulate", PIPELINE)
        scripts = SCRIPT.findall(page)
        if len(scripts) == 2:
            page = page.replace(f"<script>{scripts[0]}</script>\n", "")
        dom, complaints = self.browse(page, "#measure")
        self.assertEqual(complaints, [])
        self.assertIn("Without charts: memory, use of links over time, kernels under the roofline. This Tessera was built without", dom)
        for title in ("Timeline", "Links", "Kernels by kind", "Provenance"):
            self.assertIn(f"<h2>{title}</h2>", dom)
        self.assertNotIn("<h2>Memory</h2>", dom)
        self.assertGreater(int(re.search(r'data-found="(\d+)"', dom).group(1)), 0)

    @unittest.skipUnless(CHROMIUM, "there is no Chromium on this machine")
    def test_it_draws_and_zooms_200000_slices(self):
        """Prints how long that takes: results/bench/README.md has figures of quiet and busy machines."""
        real = self.report("simulate", PIPELINE)
        charted = {name: part for name, part in json.loads(DATA.search(real).group(2)).items() if name in ("memory", "links", "roofline")}
        text = json.dumps({**many_slices(), **charted}).replace("<", "\\u003c")
        page = DATA.sub(lambda match: match.group(1) + text + match.group(3), real)
        begin = time.monotonic()
        dom, complaints = self.browse(page, "#measure")
        self.assertEqual(complaints, [])
        self.assertFalse("<img" in dom)
        first, frame = (float(re.search(rf'data-{name}-ms="([\d.]+)"', dom).group(1)) for name in ("start", "frame"))
        print(f"200,000 slices: first drawing {first:.0f} ms, slowest frame {frame:.0f} ms, browser {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    unittest.main()
