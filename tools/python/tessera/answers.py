"""What the functions of this package return: JSON with attributes, and tables for notebooks."""

from . import html


class Answer:
    """A JSON object whose keys are attributes: `step.memory.peak_bytes` is `step.data["memory"]["peak_bytes"]`.

    `answer["key"]` works as well, for keys that only show at run time; `data` holds the plain dict.
    """

    def __init__(self, data):
        self.data = data

    def __getattr__(self, name):
        if name.startswith("__") or name == "data":
            raise AttributeError(name)
        try:
            return _wrapped(self.data[name])
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no '{name}', only {', '.join(self.data)}") from None

    def __getitem__(self, name):
        return _wrapped(self.data[name])

    def __contains__(self, name):
        return name in self.data

    def __iter__(self):
        return iter(self.data)

    def __dir__(self):
        return [*super().__dir__(), *self.data]

    def __eq__(self, other):
        return isinstance(other, Answer) and self.data == other.data

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(self.data)})"


class Step(Answer):
    """A simulated training step (schema tessera.result/1).

    `step_time_s`; `step_time_interval.low_s`, `.high_s`; `tokens_per_s`, `tokens_per_s_per_gpu`, `samples_per_s`;
    `mfu`, `hfu`, `bubble_fraction` (ratios); `exposed_communication_s`, `exposed_copies_s`; `breakdown` by phase with `seconds`, `share`;
    `kernel_kinds`, `segments`; `memory.peak_bytes`, `.capacity_bytes`, `.per_rank`; `provenance`; `definitions` says
    in words what each means. configs/schema/result.schema.json has every key.
    """

    @property
    def fits(self):
        """Whether the step fits into the memory of every GPU."""
        return self.data["memory"]["fits"]

    def __repr__(self):
        return f"Step({self.scenario}: {html.seconds(self.step_time_s)}, peak {html.size(self.memory.peak_bytes)})"

    def _repr_html_(self):
        memory = self.data["memory"]
        rows = [("step time", html.seconds(self.step_time_s)),
                ("throughput", f"{self.tokens_per_s:.0f} tokens/s, {self.tokens_per_s_per_gpu:.0f} per GPU"),
                ("MFU, HFU", f"{html.percent(self.mfu)}, {html.percent(self.hfu)}"),
                ("bubble", html.percent(self.bubble_fraction)),
                ("exposed communication", html.seconds(self.exposed_communication_s)),
                ("memory", f"{html.size(memory['device_bytes'])} of {html.size(memory['capacity_bytes'])}: "
                                f"{'fits' if self.fits else 'does not fit'}")]
        rows += [(phase.replace("_", " "), f"{html.seconds(part['seconds'])}, {html.percent(part['share'])}")
                 for phase, part in self.data["breakdown"].items() if part["seconds"] > 0]
        return html.table(rows, caption=self.scenario)


class MemoryPlan(Answer):
    """What runs again and what is swapped so that a step fits (schema tessera.memory_plan/1).

    `budget_bytes`; `feasible`; `base_step_s` without a plan; `planned_step_s` as the planner expects it and
    `simulated_step_s` with the plan in the program (None where infeasible); `stages` with `base_peak_bytes`,
    `planned_peak_bytes`, `lower_bound_bytes`, `recompute_s`, `stall_s`, `copied_bytes`, `run_again`, `infeasible`.
    """

    def __repr__(self):
        how = html.seconds(self.simulated_step_s) if self.feasible else "infeasible"
        return f"MemoryPlan({self.scenario}: {html.size(self.budget_bytes)}, {how})"

    def _repr_html_(self):
        header = ["stage", "peak without", "peak with", "run again", "copied", "recomputing", "waiting"]
        rows = [[stage["stage"], html.size(stage["base_peak_bytes"]), html.size(stage["planned_peak_bytes"]),
                 stage["run_again"], html.size(stage["copied_bytes"]), html.seconds(stage["recompute_s"]),
                 html.seconds(stage["stall_s"])] for stage in self.data["stages"]]
        return html.table(rows, header, repr(self))


class Comparison(Answer):
    """Two steps beside each other (schema tessera.comparison/1).

    `a`, `b` with `name`, `step_time_s`, `tokens_per_s`, `peak_memory_bytes`, `setup`; `difference_pct` of the step
    times, B against A, in percent; `setup` (what differs), `phases` with `a_s`, `b_s`, `difference_s`.
    """

    def __repr__(self):
        return f"Comparison({self.a.name}, {self.b.name}: {self.difference_pct:+.1f} %)"

    def _repr_html_(self):
        rows = [["step time", html.seconds(self.a.step_time_s), html.seconds(self.b.step_time_s)]]
        rows += [[row["name"], row["a"], row["b"]] for row in self.data["setup"]]
        rows += [[row["name"].replace("_", " "), html.seconds(row["a_s"]), html.seconds(row["b_s"])]
                 for row in self.data["phases"] if row["a_s"] or row["b_s"]]
        return html.table(rows, ["", self.a.name, self.b.name], repr(self))


class Table(list):
    """Rows as dicts; every row of a sweep has the fields that vary, then `outcome` and what was simulated."""

    def to_frame(self):
        """A pandas DataFrame; raises ImportError where pandas is missing."""
        import pandas  # only here: the package itself needs nothing

        return pandas.DataFrame(list(self))

    def columns(self):
        """Names in order of first use."""
        return list(dict.fromkeys(name for row in self for name in row))

    def best(self, key="tokens_per_s_per_gpu", count=5):
        """The `count` rows with the highest `key` of those that ran and fit."""
        able = [row for row in self if row.get("outcome") == "ok" and row.get("fits") and key in row]
        return Table(sorted(able, key=lambda row: -row[key])[:count])

    def _repr_html_(self):
        columns = self.columns()
        return html.table([[html.value(name, row.get(name)) for name in columns] for row in self], columns)


def _wrapped(value):
    if isinstance(value, dict):
        return Answer(value)
    return [_wrapped(item) for item in value] if isinstance(value, list) else value
