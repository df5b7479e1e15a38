"""Follows a step as it runs: operators through a dispatch mode, saved tensors through hooks.

Contents of storages are numbered: a value is what a storage holds between two writes. A tensor is a value and a
geometry, so views need no operators of their own, and an in-place operator makes a new value in an old storage.
"""

import contextlib
import threading

import torch
from torch.autograd import Variable
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from . import meter, storages


class Value:
    """What a storage holds between two writes. `external`: it was there before the step (parameters, inputs)."""

    __slots__ = ("call", "device", "external", "id", "nbytes", "overwritten", "storage")

    def __init__(self, number, storage, tensor, call, external):
        self.id = number
        self.storage = storage  # number of the first value in the same storage
        self.nbytes = storages.storage_of(tensor).nbytes()
        self.device = tensor.device
        self.call = call  # that made it; None: it was there
        self.external = external
        self.overwritten = None  # event of the write that ended it


class Call:
    """One run of an operator: `refs` are its tensor arguments and `outs` its results as (value, geometry)."""

    __slots__ = ("fresh", "func", "outs", "reads", "refs", "writes")

    def __init__(self, func, refs, outs, fresh, writes):
        self.func = func
        self.refs = refs
        self.outs = outs
        self.fresh = fresh  # (number of the result, value) of new storages
        self.writes = writes  # (number of the argument, old value, new value)

    def signature(self):
        return (self.func, self.refs, self.outs, tuple(self.fresh), tuple(self.writes))


class Handle:
    """What autograd keeps in place of a saved tensor."""

    __slots__ = ("id", "record", "tape", "tensor", "version")

    def __init__(self, tape, number):
        self.tape = tape
        self.id = number  # None: saved while a backward pass runs, and simply kept
        self.tensor = self.record = self.version = None

    def __del__(self):
        self.tape.released(self)


_WRITES = {}


def written_arguments(func):
    """(position, name) of the arguments of an operator that it writes."""
    if func not in _WRITES:
        arguments = func._schema.arguments
        _WRITES[func] = [(position, argument.name) for position, argument in enumerate(arguments)
                         if argument.alias_info is not None and argument.alias_info.is_write]
    return _WRITES[func]


def check_version(handle):
    """PyTorch leaves this check to those who hook saved tensors."""
    if handle.version is not None and handle.tensor._version != handle.version:
        raise RuntimeError(f"a tensor of shape {list(handle.tensor.shape)} that is needed for gradients has been "
                           f"modified by an inplace operation: it is at version {handle.tensor._version}, "
                           f"expected version {handle.version}")


def version_of(tensor):
    return None if getattr(tensor, "is_inference", lambda: False)() else tensor._version


class StepError(RuntimeError):
    """A step that cannot be recorded or planned, in words."""


class _Engine:
    """Stands before autograd's engine, so that a tape knows of backward passes and stays out of their operators.

    PyTorch 1.13 cannot save Python numbers in tensors' place (x * 0.5) where a mode sees the backward pass.
    """

    def __init__(self, tape, engine):
        self._tape, self._engine = tape, engine
        self._thread = threading.get_ident()

    def run_backward(self, *args, **kwargs):
        if threading.get_ident() != self._thread:
            return self._engine.run_backward(*args, **kwargs)
        if any(args[2:4]) or kwargs.get("keep_graph") or kwargs.get("create_graph"):
            raise StepError("a backward pass with retain_graph or create_graph cannot be recorded, nor run by a plan")
        with self._tape.backward():
            return self._engine.run_backward(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._engine, name)


class Tape(TorchDispatchMode):
    """Numbers values, operators and saved tensors of a step. Subclasses decide what happens to them."""

    active = []

    def __init__(self):
        super().__init__()
        self.known = {}  # address of a storage -> StorageRecord
        self.values = []
        self.calls = 0
        self.handles = 0
        self.passes = 0  # backward passes that run, one inside another
        self.unpacked = False
        self.own_work = False
        self.live = {}
        self._stack = None

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        Tape.active.append(self)
        self._stack.callback(Tape.active.remove, self)
        super().__enter__()
        self._stack.callback(super().__exit__, None, None, None)
        self._stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack))
        engine = Variable._execution_engine
        self._stack.callback(setattr, Variable, "_execution_engine", engine)
        Variable._execution_engine = _Engine(self, engine)
        return self

    def __exit__(self, *_):
        self._stack.close()

    @contextlib.contextmanager
    def backward(self):
        """A backward pass runs, without this mode where no other lies on it."""
        on_top = _python_dispatch._get_current_dispatch_mode() is self
        self.passes += 1
        try:
            with _python_dispatch._pop_mode_temporarily() if on_top else contextlib.nullcontext():
                yield
        finally:
            self.passes -= 1
        self.passed()

    @contextlib.contextmanager
    def working(self):
        """What runs in here is ours and no part of the step."""
        before, self.own_work = self.own_work, True
        try:
            with torch.no_grad():
                yield
        finally:
            self.own_work = before

    def in_backward(self):
        """Whether the step is in a backward pass, or behind one in what needs none, such as an optimizer."""
        return self.passes > 0 or (self.unpacked and not torch.is_grad_enabled())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.own_work:
            return func(*args, **kwargs)
        if self.in_backward():
            for tensor in self._written(func, args, kwargs):
                self._end_value(tensor)
            return func(*args, **kwargs)
        return self.observe(func, args, kwargs)

    # values

    def record_of(self, tensor, call=None):
        """The record of the tensor's storage; a storage that no operator made is external."""
        storage = storages.storage_of(tensor)
        record = self.known.get(storage._cdata)
        if record is None:
            value = Value(len(self.values), len(self.values), tensor, call, external=call is None)
            self.values.append(value)
            record = self.known[storage._cdata] = storages.StorageRecord(storage, call is None, value)
        return record

    def ref(self, tensor):
        """(value, geometry) of a tensor; (None, its type) where it is no plain view of a storage."""
        if not storages.is_plain(tensor):
            return (None, type(tensor).__name__)
        return (self.record_of(tensor).value.id, storages.geometry_of(tensor))

    def _written(self, func, args, kwargs):
        for position, name in written_arguments(func):
            argument = args[position] if position < len(args) else kwargs.get(name)
            yield from (tensor for tensor in storages.tensors_in(argument) if storages.is_plain(tensor))

    def _end_value(self, tensor):
        """A write to a known storage that is no part of the forward pass: what it held is gone."""
        record = self.known.get(storages.storage_of(tensor)._cdata)
        if record is not None:
            self.before_write(record)
            self.new_value(record, tensor, None)

    def new_value(self, record, tensor, call):
        old = record.value
        old.overwritten = self.now()
        record.value = Value(len(self.values), old.storage, tensor, call, record.external)
        self.values.append(record.value)
        return old, record.value

    # operators

    def observe(self, func, args, kwargs):
        """Runs an operator of the forward pass and hands what it did to `called`."""
        if self._is_outside(func, args, kwargs):
            return func(*args, **kwargs)
        number = self.calls
        self.calls += 1
        tensors = storages.tensors_in((args, kwargs))
        refs = tuple(self.ref(tensor) for tensor in tensors)
        targets = {}
        for tensor in self._written(func, args, kwargs):
            record = self.record_of(tensor)
            if record.key not in targets:
                targets[record.key] = (next(i for i, other in enumerate(tensors) if other is tensor), record, tensor)
                self.before_write(record)
        self.before_call(number, func, args, kwargs, refs)
        result = self.run_call(number, func, args, kwargs)
        writes, self.live = [], {}
        for position, record, tensor in targets.values():
            old, new = self.new_value(record, tensor, number)
            self.live[new.id] = storages.storage_of(tensor)
            writes.append((position, old.id, new.id))
        self.called(number, self._call(number, func, refs, result, writes))
        self.live = {}
        return result

    def _is_outside(self, func, args, kwargs):
        """Whether an operator writes only to tensors that the step has not read so far, such as gradients set to zero."""
        if not written_arguments(func):
            return False
        written = {storages.storage_of(tensor)._cdata for tensor in self._written(func, args, kwargs)}
        return bool(written) and not any(key in self.known for key in written) and not any(
            storages.is_plain(tensor) and storages.storage_of(tensor)._cdata in self.known
            for tensor in storages.tensors_in((args, kwargs)))

    def _call(self, number, func, refs, result, writes):
        outs, fresh = [], []
        for position, leaf in enumerate(storages.leaves_in(result)):
            if not isinstance(leaf, torch.Tensor) or not storages.is_plain(leaf):
                outs.append((None, type(leaf).__name__))
                continue
            before = len(self.values)
            value = self.record_of(leaf, number).value
            if len(self.values) > before:
                fresh.append((position, value.id))
                self.live[value.id] = storages.storage_of(leaf)
            outs.append((value.id, storages.geometry_of(leaf)))
        return Call(func, refs, tuple(outs), fresh, writes)

    # what subclasses do

    def now(self):
        return self.calls

    def before_call(self, number, func, args, kwargs, refs):
        """Ahead of an operator."""

    def run_call(self, number, func, args, kwargs):
        return func(*args, **kwargs)

    def before_write(self, record):
        """Ahead of an operator that writes to a known storage."""

    def called(self, number, call):
        """Behind an operator; `live` has the storages of the values that it made."""

    def pack(self, tensor):
        """The hook that autograd calls for every tensor that it saves."""
        if self.passes > 0:
            return self.pack_inside(tensor)
        handle = Handle(self, self.handles)
        self.handles += 1
        before, self.own_work = self.own_work, True  # as `working()`, but where no operator runs
        try:
            self.saved_tensor(handle, tensor)
        finally:
            self.own_work = before
        return handle

    def pack_inside(self, tensor):
        """What a forward pass inside a backward pass saves (reentrant checkpoints) stays as it is."""
        handle = Handle(self, None)
        handle.tensor, handle.version = tensor, version_of(tensor)
        if storages.is_plain(tensor):
            record = self.known.get(storages.storage_of(tensor)._cdata)
            if record is None or not record.external:
                handle.record = storages.storage_of(tensor)
                meter.hold(handle.record)
                self.inside(handle, record, 1)
        return handle

    def unpack(self, handle):
        """The hook that autograd calls when a backward node reads a saved tensor."""
        if handle.id is None:
            check_version(handle)
            return handle.tensor
        self.unpacked = True
        before, self.own_work = self.own_work, True  # grad mode is off in a backward pass
        try:
            return self.read_tensor(handle)
        finally:
            self.own_work = before

    def released(self, handle):
        """Autograd has let go of a saved tensor."""
        if handle.id is not None:
            self.released_tensor(handle)
        elif handle.record is not None:
            meter.free(handle.record)
            self.inside(handle, self.known.get(handle.record._cdata), -1)

    def saved_tensor(self, handle, tensor):
        raise NotImplementedError

    def read_tensor(self, handle):
        raise NotImplementedError

    def released_tensor(self, handle):
        raise NotImplementedError

    def passed(self):
        """Behind a backward pass."""

    def inside(self, handle, record, by):
        """`by` more holders inside a backward pass of a storage."""
