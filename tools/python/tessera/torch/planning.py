"""Budgets, and plans made by the program tessera."""

import json
import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import program
from .graph import CUSTOM, HOOKED
from .schedule import PlanGraph

_UNITS = {"": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class Infeasible(program.TesseraError):
    """No plan within the budget. `least_bytes`: the least budget for which one was found."""

    def __init__(self, message, least_bytes):
        super().__init__(message, program.DOES_NOT_FIT)
        self.least_bytes = least_bytes


def budget_bytes(budget, peak):
    """A budget in bytes: a number of bytes, a text such as "3 GiB", or "60%" of `peak`. Raises ValueError."""
    if isinstance(budget, (int, float)) and not isinstance(budget, bool) and budget > 0:
        return int(budget)
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(%|[A-Za-z]*)\s*", budget) if isinstance(budget, str) else None
    if not match or (match[2] != "%" and match[2] not in _UNITS) or float(match[1]) <= 0:
        raise ValueError(f"the budget {budget!r} is no size: give a number of bytes, a text such as '3 GiB', or a "
                         "share such as '60%' of the peak without a plan")
    return int(float(match[1]) * peak / 100 if match[2] == "%" else float(match[1]) * _UNITS[match[2]])


@dataclass
class Plan:
    """What to recompute and what to swap.

    `peak_bytes`: most bytes of saved tensors at a time, exactly as `peak(step)` counts them under the plan;
    `budget_bytes`; `base_peak_bytes` without a plan; `recomputed`: names of the operators that run again, in order;
    `swapped`: (name of the operator that made it, bytes) of tensors that go to the host; `base_s` and `planned_s`: the
    measured time of forward and backward operators without, and the promised one with the plan, in seconds;
    `host_bytes`: of all copies; `kept`: (name, bytes, reason) of saved tensors that cannot be recomputed.
    """

    graph: object
    budget_bytes: int
    peak_bytes: int
    base_peak_bytes: int
    recomputed: list
    swapped: list
    base_s: float
    planned_s: float
    host_bytes: int
    schedule: object = field(repr=False)

    @property
    def kept(self):
        return self.graph.kept

    def __repr__(self):
        return (f"Plan({self.peak_bytes / 2**20:.1f} of {self.budget_bytes / 2**20:.1f} MiB, "
                f"{len(self.recomputed)} operators run again, {len(self.swapped)} tensors swapped, "
                f"{100 * (self.planned_s / self.base_s - 1):+.1f} % time)")


class Attempts:
    """Asks the planner for one graph with several budgets, and keeps the exact peak of each answer."""

    def __init__(self, graph, swap, link, planner):
        self.plan_graph = PlanGraph(graph)
        self.graph = graph
        self.text = json.dumps(self.plan_graph.to_json())
        self.options = ["--planner", planner, *(["--link", link] if swap else ["--no-swap"])]
        self.lower_bound = self.base_peak = 0
        self.best = None  # the plan of the lowest peak

    def ask(self, budget, effort="fast"):
        """The plan for a budget of the planner's own, which counts a little more than is held; None where there is none."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "step.json"
            file.write_text(self.text, encoding="utf-8")
            answer = program.ask("plan", "graph", file, "--budget", f"{int(budget)} B", "--effort", effort,
                                 *self.options)
        self.lower_bound, self.base_peak = answer["lower_bound_bytes"], answer["base_peak_bytes"]
        if not answer["feasible"]:
            return None
        plan = self._plan(answer)
        if self.best is None or plan.peak_bytes < self.best.peak_bytes:
            self.best = plan
        return plan

    def without(self):
        """The plan that leaves everything where it is."""
        parts = [(self.graph.units if kind == "unit" else self.graph.nodes)[number] for kind, number in self.plan_graph.ops]
        seconds = sum(part.seconds for part in parts)
        return self._plan({"decisions": [], "budget_bytes": 0, "base_time_s": seconds, "time_s": seconds})

    def _plan(self, answer):
        schedule = self.plan_graph.schedule(answer["decisions"])
        peak, host = self.plan_graph.peak(schedule)
        units, values = self.graph.units, self.graph.values
        actions = [action for before in schedule.actions for action in before]
        again = [units[action.number].name for action in actions if action.kind == "recompute"]
        out = sorted(schedule.copied | {action.number for action in actions if action.kind == "swap_out"})
        swapped = [(units[self.graph.maker[value]].name, values[value].nbytes) for value in out]
        return Plan(self.graph, answer["budget_bytes"], peak, self.graph.peak_bytes, again, swapped,
                    answer["base_time_s"], answer["time_s"], host, schedule)

    def least(self):
        """The plan of the lowest peak, by halving what lies between the lower bound and the peak without a plan."""
        self.ask(1)
        low, high = self.lower_bound, self.base_peak
        self.ask(low)
        for _ in range(6):
            middle = (low + high) // 2
            low, high = (low, middle) if self.ask(middle) else (middle, high)
        return self.best


def plan(graph, budget, *, swap=None, link="12 GB/s", effort="thorough", planner="tessera"):
    """The fastest Plan found within `budget` for a Graph of `record`.

    `budget`: bytes, "3 GiB", or "60%" of `graph.peak_bytes`, for saved tensors and what is recomputed for them.
    `swap`: whether tensors may go to host memory over `link`; by default where the step runs on a GPU. `effort`: "fast" or
    "thorough". Raises Infeasible, which names the least budget for which a plan was found; ValueError for a budget
    that is no size.
    """
    limit = budget_bytes(budget, graph.peak_bytes)
    if swap is None:
        swap = any(value.device.type == "cuda" for value in graph.values)
    attempts = Attempts(graph, swap, link, planner)
    if limit >= graph.peak_bytes:
        return replace(attempts.without(), budget_bytes=limit)
    found = _fastest(attempts, limit, effort)
    if found is None:
        least = attempts.least()
        if least is None or least.peak_bytes > limit:
            raise _infeasible(budget, limit, graph, least)
        found = least
    return replace(found, budget_bytes=limit)


def _fastest(attempts, limit, effort):
    """The planner counts tensors of the forward pass that are not saved too, so a little more than `limit` may do; where
    the running model holds more than the planner thinks, a little less. A quick search finds how much."""
    answers = {}
    for factor in (1.0, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0):
        answers[factor] = attempts.ask(limit * factor)
        if answers[factor] is not None and answers[factor].peak_bytes > limit:
            break
    if not any(_fits(answer, limit) for answer in answers.values()):
        answers.update((factor, attempts.ask(limit * factor)) for factor in (0.95, 0.9, 0.8))
    able = [factor for factor, answer in answers.items() if _fits(answer, limit)]
    if not able:
        return None
    best = min(able, key=lambda factor: answers[factor].planned_s)
    found = answers[best]
    if effort != "fast":
        longer = attempts.ask(limit * best, effort)
        found = longer if _fits(longer, limit) and longer.planned_s < found.planned_s else found
    return found


def _fits(plan, limit):
    return plan is not None and plan.peak_bytes <= limit


def _infeasible(budget, limit, graph, least):
    if least is None:
        return Infeasible(f"no plan was found for any budget below {graph.peak_bytes} B" + _staying(graph), graph.peak_bytes)
    share = 100 * least.peak_bytes / graph.peak_bytes
    return Infeasible(f"no plan was found within {budget} ({limit} B): the least feasible budget is "
                      f"{least.peak_bytes} B, {share:.1f}% of the {graph.peak_bytes} B without a plan" + _staying(graph),
                      least.peak_bytes)


def _staying(graph):
    """Why saved tensors stay, as the end of a sentence."""
    sums = {}
    for _, nbytes, reason in graph.kept:
        sums[reason] = sums.get(reason, 0) + nbytes
    parts = [f"; {nbytes} B stay, {_CHECKPOINTS.get(reason, reason)}" for reason, nbytes in sums.items()]
    return "".join(parts) + (HOOKED if graph.hooked else "")


_CHECKPOINTS = {CUSTOM: f"{CUSTOM} (torch.utils.checkpoint with use_reentrant=True is one: leave it out, a plan does its work)"}
