"""Makes a plan happen while a step runs."""

import contextlib
import time
import warnings

import torch

from . import meter, storages
from .host import HostStore
from .replay import Recipe, StepChanged, run_unit
from .tape import StepError, Tape, check_version, version_of


class Player(Tape):
    """Follows a step beside its recording: drops, holds and copies saved tensors, and makes them again for backward.

    `recomputed`: names of the operators that ran again, in order; `swapped`: (operator, bytes) of what went to the
    host; `extra_s`: what that took, in seconds; `followed`: whether the step did what was recorded.
    """

    def __init__(self, plan, on_change):
        if on_change not in ("raise", "keep"):
            raise ValueError(f"on_change is {on_change!r}: give 'raise' or 'keep'")
        super().__init__()
        self.plan, self.graph, self.schedule = plan, plan.graph, plan.schedule
        self.on_change = on_change
        self.followed = self.in_order = True
        self.error = None
        self.when_over = lambda: None
        self.held = {}  # value -> storage
        self.host = HostStore()
        self.recipes = {}
        self.recomputed, self.swapped, self.extra_s = [], [], 0.0
        self.current, self.ended = -1, True  # backward node
        self.node_of = {handle: number for number, node in enumerate(self.graph.nodes) for handle in node.handles}
        self.captures_at = {}
        for value, event in self.schedule.captures.items():
            self.captures_at.setdefault(self.graph.events[event], []).append(value)
        self.again = self._calls_to_keep()

    def _calls_to_keep(self):
        """Operators whose arguments are kept to run them again; on demand any may be asked for."""
        units = self.graph.units
        numbers = {action.number for before in self.schedule.actions for action in before if action.kind == "recompute"}
        chosen = units if self.on_change == "keep" else [units[number] for number in numbers]
        return {call for unit in chosen if not unit.fixed for call in unit.calls}

    # the forward pass

    def __enter__(self):
        if any(isinstance(tape, Player) for tape in Tape.active):
            raise StepError("another plan is applied already: one iteration runs by one plan")
        return super().__enter__()

    def observe(self, func, args, kwargs):
        if self.error is not None:
            raise self.error
        if not self.followed or self.is_over():
            return func(*args, **kwargs)
        return super().observe(func, args, kwargs)

    def is_over(self):
        """Whether the last backward node is done: what follows is not ours, but for another iteration."""
        return self.ended and self.current == len(self.graph.nodes) - 1

    def before_call(self, number, func, args, kwargs, refs):
        if number >= len(self.graph.signatures):
            self._changed(f"it runs {func} behind its recorded end")
        elif self.graph.signatures[number][:2] != (func, refs):
            self._changed(f"operator {number} is " + _difference((func, refs), self.graph.signatures[number][:2]))
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

    def called(self, number, call):
        if self.followed and call.signature() != self.graph.signatures[number]:
            self._changed(f"{call.func} (operator {number}) makes other results")
        if self.followed:
            self._capture(("call", number))

    def _capture(self, event):
        for value in self.captures_at.get(event, ()):
            if value in self.schedule.copied:
                with self.working():
                    self._copy_out(value, self.live[value])
            if value in self.schedule.held:
                self._hold(value, self.live[value])

    def _changed(self, what, at_once=True):
        """`at_once` not within a hook of autograd, which would make another error of it: the next operator raises it."""
        message = f"the step is not the recorded one: {what}; record and plan it anew"
        self.followed = False
        if self.on_change == "raise":
            self._error(message)
            if at_once:
                raise self.error
            return
        warnings.warn(message + ", or it may exceed the budget; what it saves from here on is kept", stacklevel=2)

    def saved_tensor(self, handle, tensor):
        plain = storages.is_plain(tensor)
        record = self.record_of(tensor) if plain else None
        if self.followed and self.is_over():
            self._changed("it saves tensors behind its recorded end; one iteration runs in one applied(plan)", at_once=False)
        if self.followed and not self._as_recorded(handle.id, tensor, record):
            self._changed(self._other_saved(handle.id, tensor), at_once=False)
        value = self.graph.saved[handle.id] if self.followed else None
        if value is not None:
            handle.record = value
            self.live = {record.value.id: storages.storage_of(tensor)}
            self._capture(("pack", handle.id))
            self.live = {}
            return
        handle.tensor, handle.version = tensor, version_of(tensor)
        if plain and not record.external:
            handle.record = storages.storage_of(tensor)
            meter.hold(handle.record)

    def _as_recorded(self, number, tensor, record):
        ours = (None, type(tensor).__name__) if record is None else (record.value.id, storages.geometry_of(tensor))
        return number < len(self.graph.packs) and ours == self.graph.packs[number]

    def _other_saved(self, number, tensor):
        if number >= len(self.graph.packs):
            return f"it saves a tensor of shape {list(tensor.shape)} more than recorded"
        known = self.graph.packs[number][1]
        text = known if isinstance(known, str) else str(list(known.size))
        if text == str(list(tensor.shape)):
            return f"saved tensor {number}, {text}, is not the tensor that it was"
        return f"saved tensor {number} is {list(tensor.shape)}, recorded was {text}"

    # the backward pass

    def backward(self):
        if self.error is not None:
            raise self.error
        return super().backward()

    def read_tensor(self, handle):
        node = self.node_of.get(handle.id) if handle.tensor is None or self.followed else None
        if node is not None:
            self._enter_node(node)
        if handle.tensor is not None:
            check_version(handle)
            return handle.tensor
        return storages.view_of(self._made(handle.record), self.graph.packs[handle.id][1])

    def _enter_node(self, node):
        if node == self.current or not self.in_order:
            return
        if node != self.current + 1:
            self._lose_order(node)
            return
        self._leave_node()
        self.current, self.ended = node, False
        for action in self.schedule.actions[node]:
            self._perform(action)

    def _lose_order(self, node):
        message = f"the backward pass reaches node {node} behind node {self.current}, other than when it was recorded"
        if self.on_change == "raise":
            raise self._error(message + "; record and plan it anew")
        self.in_order = False
        warnings.warn(message + "; tensors are made again when they are asked for", stacklevel=2)

    def _leave_node(self):
        if self.ended or not self.in_order:
            return
        self.ended = True
        for value in self.schedule.drops[self.current]:
            self._drop(value)

    def released_tensor(self, handle):
        if handle.tensor is not None and handle.record is not None:
            meter.free(handle.record)
        if self.node_of.get(handle.id) == self.current:
            self._leave_node()

    def passed(self):
        if self.is_over():
            self.when_over()

    def _perform(self, action):
        start = time.perf_counter()
        if action.kind == "recompute":
            self._recompute(action.number)
        elif action.kind == "swap_in":
            self._hold(action.number, self.host.get(action.number))
        else:
            self._copy_out(action.number, self.held[action.number])
        for value in action.drops:
            self._drop(value)
        self.extra_s += time.perf_counter() - start

    def _recompute(self, number):
        unit = self.graph.units[number]
        with without_autocast():
            made = run_unit(unit, self.graph, self.recipes, self._read)
        self.recomputed.append(unit.name)
        old = [self.held[value] for value in made if value in self.held]
        for value, storage in made.items():
            self.held[value] = storage
            meter.hold(storage)
        for storage in old:
            meter.free(storage)

    def _made(self, value):
        """The storage of a value: held, or made again on demand where the backward pass lost its order."""
        waiting = [value]
        while waiting:
            wanted = waiting[-1]
            if wanted in self.held:
                waiting.pop()
            elif wanted in self.host:
                self._hold(wanted, self.host.get(wanted))
            else:
                unit = self.graph.units[self.graph.maker[wanted]]
                if unit.fixed or any(call not in self.recipes for call in unit.calls):
                    raise self._error(f"the backward pass asks for a tensor of {unit.name} that the plan has dropped and "
                                      "that cannot be made again; record and plan the step anew")
                missing = [read for read in unit.reads if read not in self.held]
                waiting += missing
                if not missing:
                    self._recompute(self.graph.maker[wanted])
        return self._read(value)

    def _error(self, message):
        """PyTorch 1.13 turns errors of hooks into RuntimeErrors; `__exit__` raises the one that it was."""
        self.error = StepChanged(message)
        return self.error

    # what is held

    def _read(self, value):
        """The storage of a held value, complete: a copy back from the host may still be under way."""
        self.host.wait_for(value)
        return self.held[value]

    def _hold(self, value, storage):
        if value not in self.held:
            self.held[value] = storage
            meter.hold(storage)

    def _drop(self, value):
        storage = self.held.pop(value, None)
        if storage is not None:
            meter.free(storage)

    def _copy_out(self, value, storage):
        if value not in self.host:
            self.host.put(value, storage, self.graph.values[value].device)
            unit = self.graph.units[self.graph.maker[value]]
            self.swapped.append((unit.name, self.graph.values[value].nbytes))

    def __exit__(self, *error):
        super().__exit__(*error)
        if error[0] is not None or self.current == len(self.graph.nodes) - 1:
            self._leave_node()
            for value in list(self.held):
                self._drop(value)
            self.recipes.clear()
        hidden = error[1] is None or (isinstance(error[1], RuntimeError) and error[1] is not self.error)
        if self.error is not None and hidden:
            raise self.error from error[1]


@contextlib.contextmanager
def without_autocast():
    """Operators were recorded behind the casts that autocast makes."""
    with contextlib.ExitStack() as stack:
        for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _difference(ran, recorded):
    """What a call is, and what it was: an operator with the shapes of its arguments."""
    if _call_text(*ran) != _call_text(*recorded):
        return f"{_call_text(*ran)}, recorded was {_call_text(*recorded)}"
    other = next(position for position, (a, b) in enumerate(zip(ran[1], recorded[1])) if a != b)
    return f"{_call_text(*ran)}, whose argument {other} is not the tensor that it was"


def _call_text(func, refs):
    shapes = ", ".join(str(list(geometry.size)) if value is not None else geometry for value, geometry in refs)
    return f"{func}({shapes})"


def applied(plan, on_change="raise"):
    """A context in which one iteration runs by `plan`: `with applied(plan): loss = step()`.

    What the plan drops is not kept for backward and made again there, bit for bit, with the random state that it had;
    what it swaps waits in host memory. `as run` gives `run.recomputed`, `run.swapped`, `run.extra_s`. Raises StepChanged
    where the step is not the recorded one (other shapes, other control flow); with `on_change="keep"` it goes on
    instead, with a warning: gradients are right, but the budget may be exceeded.
    """
    return Player(plan, on_change)
