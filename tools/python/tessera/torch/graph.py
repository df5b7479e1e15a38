"""The graph of a recorded step: units that can run again, backward nodes, and when tensors were saved."""

from dataclasses import dataclass, field

CUSTOM = "made in a custom autograd function"
HOOKED = ("; what the step saves under hooks of its own (torch.utils.checkpoint with use_reentrant=False, save_on_cpu) is "
          "not seen: leave these out, a plan does their work")


@dataclass
class Unit:
    """Operators that run again together: one, and the in-place operators that complete its result.

    `reads` and `makes` are numbers of values; `seconds` was measured; `fixed` says why it cannot run again, or None.
    """

    name: str
    calls: list
    reads: set
    makes: list
    seconds: float
    fixed: object = None
    random: bool = False


@dataclass
class Node:
    """A backward node that reads saved tensors. `handles` in the order of reading; `reads` their values."""

    handles: list
    event: int
    reads: list = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class Graph:
    """One iteration as it ran.

    `units`, `nodes`: what ran, times in seconds. `saved`: value of every saved tensor, by number of its handle; None
    for parameters and inputs, which are neither counted nor recomputed. `peak_bytes`: most bytes of saved tensors at a
    time, each storage once. `kept`: (name, bytes, reason) of saved tensors that cannot be recomputed. `loss`: what
    the step returned, detached.
    """

    units: list
    nodes: list
    values: list
    saved: list
    signatures: list
    packs: list
    events: list
    random_calls: set
    stats: dict
    dirty: set
    peak_bytes: int
    seconds: float
    loss: object = None
    maker: dict = field(default_factory=dict)
    hooked: bool = False  # the step has hooks of its own, and what they keep is in none of these

    @property
    def kept(self):
        rows = {}
        for value in filter(lambda saved: saved is not None, self.saved):
            unit = self.units[self.maker[value]]
            if unit.fixed:
                rows[value] = (unit.name, self.values[value].nbytes, unit.fixed)
        return list(rows.values())

    def __repr__(self):
        return (f"Graph({len(self.units)} operators, {len(self.nodes)} backward nodes, "
                f"{self.peak_bytes / 2**20:.1f} MiB of saved tensors, {self.seconds * 1e3:.1f} ms)")


class UnitBuilder:
    """Joins calls to units: an in-place operator belongs to the unit whose result it alone reads and completes."""

    def __init__(self, calls, values, saved, fixed, random_calls, seconds, stats):
        self.calls, self.values, self.fixed = calls, values, fixed
        self.random_calls, self.seconds, self.stats = random_calls, seconds, stats
        self.saved = saved
        self.units, self.maker = [], {}
        self.readers = {}
        for number, call in enumerate(calls):
            for value in self.reads_of(number, call):
                self.readers.setdefault(value, set()).add(number)

    def reads_of(self, number, call):
        """Numbers of the internal values that a call needs; the running statistics of a batch norm are none."""
        skipped = self.stats.get(number, ())
        return {value for position, (value, _) in enumerate(call.refs)
                if value is not None and position not in skipped and not self.values[value].external}

    def build(self):
        for number, call in enumerate(self.calls):
            makes = [value for _, value in call.fresh]
            makes += [new for _, old, new in call.writes if not self.values[new].external]
            if makes:
                self._place(number, call, makes)
        return self.units, self.maker

    def _place(self, number, call, makes):
        reads = self.reads_of(number, call)
        unit = self._completed(number, call)
        if unit is None:
            unit = Unit(str(call.func), [], set(), [], 0.0)
            self.units.append(unit)
            index = len(self.units) - 1
        else:
            index = self.maker[call.writes[0][1]]
            unit.makes.remove(call.writes[0][1])
            reads -= {call.writes[0][1]}
            if "empty" in unit.name:
                unit.name = str(call.func)
        unit.calls.append(number)
        unit.reads |= reads
        unit.makes += makes
        unit.seconds += self.seconds[number]
        unit.fixed = unit.fixed or self.fixed.get(number)
        unit.random |= number in self.random_calls
        for value in makes:
            self.maker[value] = index

    def _completed(self, number, call):
        """The unit that this in-place call completes, or None."""
        if len(call.writes) != 1 or self.values[call.writes[0][1]].external:
            return None
        old = call.writes[0][1]
        if old not in self.maker or old in self.saved or self.readers.get(old, set()) - {number}:
            return None
        unit = self.units[self.maker[old]]
        others = (self.readers.get(value, set()) for value in unit.makes if value != old)
        return unit if all(reader > number for readers in others for reader in readers) else None
