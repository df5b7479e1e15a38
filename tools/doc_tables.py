"""Tables of simulated figures that stand inside pages written by hand, each between `<!-- table NAME -->` and `<!-- end -->`."""
import json
import re
import subprocess
import tempfile
from pathlib import Path

REGION = re.compile(r"(?s)(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)")
FABRICS = {"dgx-h100-x8-rail": "`rail`: one unit of a SuperPOD", "dgx-h100-x8-clos-4to1": "`clos-4to1`: racks of two nodes, 1:4 above",
           "dgx-h100-x8-dragonfly": "`dragonfly`: 4 groups, 4 cables between two", "dgx-h100-x8-torus": "`torus`: 2 x 4 nodes, 4 cables to each neighbour",
           "dgx-h100-x8-torus-3d": "`torus-3d`: 4 x 4 x 4 NICs"}
ROUND_TRIPS = {"gpt2-large_4xh100_dp4": ("hgx-h100-4", ""), "gpt3-xl_4xh100_pp4_1f1b": ("hgx-h100-4", ""), "gpt3-2.7b_64xh100_dp64_bf16": ("dgx-h100-x8-rail", ""),
               "mixtral-8x7b_64xh100_tp2_pp4_ep8_bf16": ("dgx-h100-x8-rail", ""),
               "llama-3-8b_64xh100_tp4_cp8_bf16": ("dgx-h100-x8-rail", ": a ring shift is written as a send and a receive, which do not wait for the whole ring")}


def answer(program, folder, *arguments):
    return subprocess.run([program, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def step_ms(text):
    return 1e3 * json.loads(text)["step_time_s"]


def round_trips(program):
    """Steps simulated, written as Chakra traces, and replayed on the same cluster."""
    lines = ["| scenario | simulated [ms] | replayed [ms] | difference |", "|---|---|---|---|"]
    for scenario, (cluster, why) in ROUND_TRIPS.items():
        with tempfile.TemporaryDirectory() as folder:
            simulated = step_ms(answer(program, folder, "simulate", scenario, "--chakra", "job", "--format", "json"))
            replayed = step_ms(answer(program, folder, "replay", "job", "--cluster", cluster, "--format", "json"))
        off = 100 * abs(replayed / simulated - 1)
        difference = "below 0.0001 %" if off < 1e-4 else f"{100 * (replayed / simulated - 1):.1f} %"
        lines.append(f"| {scenario} | {simulated:.4f} | {replayed:.4f} | {difference}{why} |")
    return "\n".join(lines) + "\n"


def figure(text, name):
    """"1.47 TB/s" of the line of `topology show` that begins with `name`; its first word where it has no unit."""
    value = re.search(rf"(?m)^{name} +([\d.]+ \S+|[\d.]+)", text).group(1)
    return value


def fabrics(program):
    """Figures of `topology show` for the same 64 GPUs."""
    lines = ["| cluster | bisection | oversubscription | slowest GPU when all send half the cluster away | diameter |", "|---|---|---|---|---|"]
    for cluster, words in FABRICS.items():
        text = answer(program, ".", "topology", "show", cluster)
        share = figure(text, "oversubscription").split()[0]
        lines.append(f"| {words} | {figure(text, 'bisection bandwidth')} | {share} | {figure(text, 'shift by half')} | {figure(text, 'diameter')} |")
    return "\n".join(lines) + "\n"


def bottleneck(name):
    """A link's kind in words: "node1/nic0->fabric" is the NICs."""
    if "nic" in name:
        return "the NICs"
    return " to ".join(re.sub(r"[\d.]+", "", end.rpartition("/")[2].rpartition(".")[2]) or "router" for end in name.split("->"))


def five_networks(program):
    """One data-parallel step on the same 64 GPUs and five networks."""
    lines = ["| cluster | step | all-reduce | algorithm | slowest link |", "|---|---:|---:|---|---|"]
    for cluster in FABRICS:
        step = json.loads(answer(program, ".", "simulate", "gpt3-2.7b_64xh100_dp64_bf16", "--set", f"cluster={cluster}", "--format", "json"))
        alone = json.loads(answer(program, ".", "collective", "--cluster", cluster, "--op", "all_reduce", "--bytes", "10GiB", "--format", "json"))
        exposed = step["exposed_communication_s"]
        lines.append(f"| `{cluster}` | {1e3 * step['step_time_s']:.1f} ms | {1e3 * exposed:.1f} ms | {alone['algorithm']} | {bottleneck(alone['bottleneck'])} |")
    return "\n".join(lines) + "\n"


TABLES = {"round-trips": round_trips, "fabrics": fabrics, "five-networks": five_networks}


def pages_with_tables(root):
    return [page for folder in ("docs", "results") for page in sorted((Path(root) / folder).rglob("*.md")) if REGION.search(page.read_text(encoding="utf-8"))]


def with_tables(text, program):
    """The page with its tables as the program makes them now."""
    return REGION.sub(lambda found: found.group(1) + TABLES[found.group(2)](program) + found.group(3), text)
