"""What a plan does at which moment, and exactly how many bytes that holds."""

from dataclasses import dataclass, field


@dataclass
class Action:
    """Ahead of a backward node: kind "recompute" (`number`: unit), "swap_in", "swap_out" (value); then `drops` go."""

    kind: str
    number: int
    drops: list = field(default_factory=list)


@dataclass
class Schedule:
    """`held`: values that stay from the forward pass on; `copied`: values that go to the host in the forward pass;
    `actions`: per backward node what comes ahead of it; `drops`: per backward node what goes behind it;
    `captures`: event of the forward pass at which a value is taken up."""

    held: set
    copied: set
    actions: list
    drops: list
    captures: dict


class PlanGraph:
    """The part of a recorded graph that matters to a plan, as the planner numbers it."""

    def __init__(self, graph):
        self.graph = graph
        needed = self._needed()
        unit_event = self._unit_events()
        moments = [(unit_event[number], "unit", number) for number in needed]
        moments += [(node.event, "node", number) for number, node in enumerate(graph.nodes)]
        self.ops = [(kind, number) for _, kind, number in sorted(moments)]
        self.tensors = [value for kind, number in self.ops if kind == "unit" for value in graph.units[number].makes]

    def _needed(self):
        """Units that make what is saved, and what they need to do so again."""
        graph, found = self.graph, set()
        waiting = [graph.maker[value] for node in graph.nodes for value in node.reads]
        while waiting:
            number = waiting.pop()
            if number in found:
                continue
            found.add(number)
            if not graph.units[number].fixed:
                waiting += [graph.maker[value] for value in graph.units[number].reads]
        return found

    def _unit_events(self):
        calls = {number: event for event, (kind, number) in enumerate(self.graph.events) if kind == "call"}
        return [calls[unit.calls[-1]] for unit in self.graph.units]

    def to_json(self):
        """The graph as `tessera plan graph` reads it."""
        number_of = {value: number for number, value in enumerate(self.tensors)}
        ops = []
        for kind, number in self.ops:
            part = self.graph.units[number] if kind == "unit" else self.graph.nodes[number]
            fixed = kind == "node" or part.fixed is not None
            reads = [] if kind == "unit" and fixed else sorted(number_of[value] for value in part.reads)
            ops.append({"name": part.name if kind == "unit" else f"backward node {number}",
                        "time_ns": max(1, round(part.seconds * 1e9)), "inputs": reads, "fixed": fixed,
                        "out_bytes": [self.graph.values[value].nbytes for value in part.makes] if kind == "unit" else []})
        first = next(index for index, (kind, _) in enumerate(self.ops) if kind == "node")
        return {"name": "recorded step", "ops": ops, "first_backward": first}

    def schedule(self, decisions):
        """The planner's decisions as actions around backward nodes.

        What the planner does ahead of an operator of the forward pass has no place in a running model, whose own
        code holds its tensors there: a value made again there is one that stays; one copied there is copied when taken up.
        """
        by_op = {}
        for decision in decisions:
            by_op.setdefault(decision["before"], []).append(decision)
        steps, copied = [], set()
        for index, (kind, number) in enumerate(self.ops):
            for decision in by_op.get(index, ()):
                target = decision["op"] if decision["action"] == "recompute" else decision["tensor"]
                target = self.ops[target][1] if decision["action"] == "recompute" else self.tensors[target]
                if decision["action"] != "recompute" and target in self.graph.dirty:
                    continue  # who knows when it is complete: it stays
                if kind == "node":
                    steps.append((decision["action"], target))
                elif decision["action"] == "swap_out":
                    copied.add(target)
            if kind == "node":
                steps.append(("node", number))
        return self._with_drops(steps, copied)

    def _with_drops(self, steps, copied):
        held, drops = set(), {}
        for value, (starts, reads) in self._lives(steps).items():
            edges = sorted(starts)
            for begin, end in zip([-1, *edges], [*edges, len(steps)]):
                inside = [read for read in reads if begin < read < end]
                if begin < 0 and inside:
                    held.add(value)
                if begin >= 0 or inside:
                    drops.setdefault(max(inside, default=begin), []).append(value)
        return self._arranged(steps, copied, held, drops)

    def _lives(self, steps):
        """Per value: the steps that make it, and those that read it."""
        lives = {}
        units = self.graph.units
        for index, (kind, number) in enumerate(steps):
            reads = {"node": lambda n: self.graph.nodes[n].reads, "recompute": lambda n: units[n].reads,
                     "swap_out": lambda n: [n], "swap_in": lambda n: []}[kind](number)
            makes = {"recompute": lambda n: units[n].makes, "swap_in": lambda n: [n]}.get(kind, lambda n: [])(number)
            for value in reads:
                lives.setdefault(value, ([], []))[1].append(index)
            for value in makes:
                lives.setdefault(value, ([], []))[0].append(index)
        return lives

    def _arranged(self, steps, copied, held, drops):
        count = len(self.graph.nodes)
        schedule = Schedule(held, copied, [[] for _ in range(count)], [[] for _ in range(count)], {})
        waiting = []
        for index, (kind, number) in enumerate(steps):
            if kind == "node":
                schedule.actions[number], waiting = waiting, []
                schedule.drops[number] = sorted(drops.get(index, ()))
            else:
                waiting.append(Action(kind, number, sorted(drops.get(index, ()))))
        schedule.captures = self._captures(held | copied)
        return schedule

    def _captures(self, wanted):
        """A saved value is taken up when it is saved, complete as it is; any other when it is made."""
        saved_values = set(self.graph.saved)
        made, taken = {}, {}
        for event, (kind, number) in enumerate(self.graph.events):
            if kind == "call":
                _, _, _, fresh, writes = self.graph.signatures[number]
                for value in [value for _, value in fresh] + [new for _, _, new in writes]:
                    made[value] = event
                    if value in wanted and value not in saved_values:
                        taken[value] = event
            elif kind == "pack" and self.graph.saved[number] in wanted:
                taken.setdefault(self.graph.saved[number], event)
        return {value: max(event, made[value]) for value, event in taken.items()}

    def peak(self, schedule):
        """(most bytes held at a time, bytes of host copies)."""
        ledger = _Ledger([value.nbytes for value in self.graph.values])
        by_event = {}
        for value, event in schedule.captures.items():
            by_event.setdefault(event, []).append(value)
        host = set(schedule.copied)
        for event, (kind, number) in enumerate(self.graph.events):
            for value in by_event.get(event, ()):
                if value in schedule.held:
                    ledger.take([value])
            if kind == "inside":
                ledger.hold_inside(*number)
            if kind == "node":
                for action in schedule.actions[number]:
                    self._count(action, ledger, host)
                ledger.drop(schedule.drops[number])
        return ledger.peak, sum(self.graph.values[value].nbytes for value in host)

    def _count(self, action, ledger, host):
        if action.kind == "swap_out":
            host.add(action.number)
        else:
            ledger.take(self.graph.units[action.number].makes if action.kind == "recompute" else [action.number])
        ledger.drop(action.drops)


class _Ledger:
    """Bytes that are held, as the running model counts them: what is made again lies beside an old copy of itself."""

    def __init__(self, sizes):
        self.sizes, self.peak = sizes, 0
        self._held, self._inside = {}, {}

    def take(self, values):
        now = sum({**self._held, **{key: size for key, (size, _) in self._inside.items()}}.values())
        self.peak = max(self.peak, now + sum(self.sizes[value] for value in values))
        self._held.update((value, self.sizes[value]) for value in values)

    def drop(self, values):
        for value in values:
            self._held.pop(value, None)

    def hold_inside(self, unknown, key, size, by):
        """Counts holders of what a forward pass inside a backward pass saves; keys of unknown storages are texts."""
        key = str(key) if unknown else key
        count = self._inside.get(key, (size, 0))[1] + by
        self._inside[key] = (size, count)
        if not count:
            del self._inside[key]
        self.take([])
