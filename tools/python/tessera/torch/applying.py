"""Makes a plan happen while a step runs."""

import warnings

import torch

from . import meter, storages
from .host import HostStore
from .recording import check_version
from .replay import Recipe, StepChanged, run_unit
from .tape import Handle, Tape, version_of


class Player(Tape):
    """Follows a step beside its recording: drops, holds and copies saved tensors, and makes them again for backward.

    `recomputed`: names of the operators that ran again, in order; `swapped`: (operator, bytes) of what went to the
    host; `recompute_s`: what that took, in seconds; `followed`: whether the step did what was recorded.
    """

    def __init__(self, plan, on_change):
        super().__init__()
        self.plan, self.graph, self.schedule = plan, plan.graph, plan.schedule
        self.on_change = on_change
        self.followed = self.in_order = True
        self.held = {}  # value -> storage
        self.host = HostStore()
        self.recipes = {}
        self.recomputed, self.swapped = [], []
        self.current, self.ended = -1, True  # backward node
        self.node_of = {handle: number for number, node in enumerate(self.graph.nodes) for handle in node.handles}
        self.captures_at = {}
        for value, event in self.schedule.captures.items():
            self.captures_at.setdefault(self.graph.events[event], []).append(value)
        self.again = {call: unit for unit in self.graph.units if not unit.fixed for call in unit.calls}

    # the forward pass

    def observe(self, func, args, kwargs):
        if not self.followed:
            return func(*args, **kwargs)
        return super().observe(func, args, kwargs)

    def before_call(self, number, func, args, kwargs, refs):
        if number >= len(self.graph.signatures):
            self._changed(f"it runs {func} behind its recorded end")
        elif self.graph.signatures[number][:2] != (func, refs):
            self._changed(f"operator {number} is {_call_text(func, refs)}, recorded was "
                          f"{_call_text(*self.graph.signatures[number][:2])}")
        elif number in self.again:
            with self.working():
                self.recipes[number] = Recipe(func, args, kwargs, refs, self.values, self.graph.stats.get(number, ()),
                                              number in self.graph.random_calls)

    def before_write(self, record):
        """The step overwrites what is held for later: a copy stays."""
        value = record.value
        if value.id in self.held and self.held[value.id]._cdata == record.key:
            with self.working():
                copy = storages.storage_of(storages.bytes_of(self.held[value.id], value.device).clone())
            self._drop(value.id)
            self._hold(value.id, copy)

    def called(self, number, call, result):
        if self.followed and call.signature() != self.graph.signatures[number]:
            self._changed(f"{call.func} (operator {number}) makes other results")
        if self.followed:
            self._capture(("call", number))

    def _capture(self, event):
        for value in self.captures_at.get(event, ()):
            with self.working():
                record = self._storage_of_live(value)
                if value in self.schedule.copied:
                    self._copy_out(value, record)
                if value in self.schedule.held:
                    self._hold(value, record)

    def _storage_of_live(self, value):
        return self._live[value]

    def _changed(self, what):
        message = f"the step is not the recorded one: {what}; record and plan it anew"
        if self.on_change == "raise":
            raise StepChanged(message)
        self.followed = False
        warnings.warn(message + ", or it may exceed the budget; what it saves from here on is kept", stacklevel=2)
