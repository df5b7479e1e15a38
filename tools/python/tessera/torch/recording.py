"""Records one iteration."""

import contextlib
import sys
import time

import torch

from . import meter
from .graph import CUSTOM, HOOKED, Graph, Node, UnitBuilder
from .storages import bytes_of, geometry_of, is_plain, storage_of, tensors_in
from .tape import StepError, Tape, check_version, version_of

_UNWRITTEN = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
_RESIZING = ("resize_", "resize_as_", "set_")


def synchronize():
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def generators_of(kwargs=None):
    """Random generators that an operator may draw from."""
    found = [torch.default_generator]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found.append(torch.cuda.default_generators[torch.cuda.current_device()])
    own = (kwargs or {}).get("generator")
    return [*found, own] if own is not None else found


def in_custom_function():
    """Whether the code of a torch.autograd.Function runs: it may fill tensors by other means than operators.

    Its first argument is the context; where that comes later (setup_context), PyTorch calls it from a class method.
    """
    frame = sys._getframe(1)
    while frame is not None:
        names = frame.f_code.co_varnames
        first = frame.f_locals.get(names[0]) if names else None
        if isinstance(first, torch._C._FunctionBase):
            return True
        if frame.f_code.co_name == "apply" and isinstance(first, type) and issubclass(first, torch.autograd.Function):
            return True
        frame = frame.f_back
    return False


def fingerprint(storage, device):
    """A number that changes with the bytes of `storage`, short of rare coincidence."""
    whole = bytes_of(storage, device)
    words = whole[:whole.numel() // 4 * 4].view(torch.int32)
    return (words.sum(dtype=torch.int64).item(), whole[words.numel() * 4:].sum(dtype=torch.int64).item())


def statistics_of(func, args, kwargs):
    """Positions of running statistics among the arguments of a batch norm that trains: written, but not read."""
    names = [argument.name for argument in func._schema.arguments]
    if "running_mean" not in names:
        return ()
    training = True
    for name in ("training", "use_input_stats"):
        if name in names:
            position = names.index(name)
            training = args[position] if position < len(args) else kwargs.get(name, True)
    return tuple(names.index(name) for name in ("running_mean", "running_var")) if training else ()


class Recorder(Tape):
    """Keeps what a step does, in order, and measures it; saved tensors stay as they are."""

    def __init__(self):
        super().__init__()
        self.recorded, self.seconds, self.events = [], [], []
        self.fixed, self.random_calls, self.stats = {}, set(), {}
        self.saved, self.packs = [], []
        self.prints, self.dirty, self.readers = {}, set(), {}
        self.nodes, self.node = [], None
        self.open = set()  # unpacked and not yet released
        self.started = 0.0
        self.hooked = False

    def now(self):
        return len(self.events)

    # writes that no operator makes (numpy, kernels of one's own)

    def _inspect(self, tensor, number=None):
        """Compares what a storage holds with what it held when it was last seen."""
        if not is_plain(tensor):
            return
        value = self.record_of(tensor).value
        print_now = fingerprint(storage_of(tensor), tensor.device)
        if self.prints.setdefault(value.id, print_now) != print_now:
            self.dirty.add(value.id)
        if number is not None:
            self.readers.setdefault(value.id, set()).add(number)

    # operators

    def before_call(self, number, func, args, kwargs, refs):
        name = func._schema.name.split("::")
        if name[0] not in ("aten", "prims"):
            self.fixed[number] = f"{func} is no operator of PyTorch's own"
        elif name[1] in _RESIZING:
            self.fixed[number] = f"{func} changes a storage"
        elif any(value is None for value, _ in refs):
            self.fixed[number] = f"{func} reads a tensor that is no plain view of a storage"
        elif in_custom_function():
            self.fixed[number] = CUSTOM
        positions = statistics_of(func, args, kwargs)
        if positions:
            self.stats[number] = tensor_positions(args, positions)
        skipped = self.stats.get(number, ())
        with self.working():
            for position, tensor in enumerate(tensors_in((args, kwargs))):
                if position not in skipped:
                    self._inspect(tensor, number)

    def run_call(self, number, func, args, kwargs):
        generators = generators_of(kwargs)
        before = [generator.get_state() for generator in generators]
        synchronize()
        start = time.perf_counter()
        result = func(*args, **kwargs)
        synchronize()
        self.seconds.append(time.perf_counter() - start)
        if any(not torch.equal(old, generator.get_state()) for old, generator in zip(before, generators)):
            self.random_calls.add(number)
        return result

    def called(self, number, call):
        self.recorded.append(call)
        with self.working():
            for value, storage in self.live.items():
                self.prints[value] = fingerprint(storage, self.values[value].device)
        self.events.append(("call", number))

    # saved tensors

    def saved_tensor(self, handle, tensor):
        handle.tensor, handle.version = tensor, version_of(tensor)
        known = is_plain(tensor)
        record = self.record_of(tensor) if known else None
        with self.working():
            self._inspect(tensor)
        self.packs.append((record.value.id, geometry_of(tensor)) if known else (None, type(tensor).__name__))
        internal = known and not record.external
        self.saved.append(record.value if internal else None)
        if internal:
            handle.record = record
            self.events.append(("pack", handle.id))
            meter.hold(storage_of(tensor))

    def read_tensor(self, handle):
        check_version(handle)
        self._inspect(handle.tensor)
        if handle.record is not None:
            self.saved[handle.id] = handle.record.value
        if self.node is None:
            self._open_node()
        if handle.id in self.node.handles:
            return handle.tensor
        if any(handle.id in node.handles for node in self.nodes[:-1]):
            raise StepError("the backward pass reads a saved tensor twice: such steps cannot be recorded")
        self.node.handles.append(handle.id)
        self.open.add(handle.id)
        return handle.tensor

    def inside(self, handle, record, by):
        key = handle.record._cdata if record is None else record.value.id
        self.events.append(("inside", (record is None, key, handle.record.nbytes(), by)))

    def _open_node(self):
        synchronize()
        self.node = Node([], len(self.events))
        self.nodes.append(self.node)
        self.events.append(("node", len(self.nodes) - 1))
        self.started = time.perf_counter()

    def released_tensor(self, handle):
        self.open.discard(handle.id)
        if self.node is not None and handle.id in self.node.handles:
            synchronize()
            self.node.seconds = time.perf_counter() - self.started
            self.node = None
        if handle.record is not None:
            self.events.append(("release", handle.id))
            meter.free(storage_of(handle.tensor))
            handle.record = None


def tensor_positions(args, positions):
    """Which tensors, counted among all tensors of `args`, are the arguments at `positions`."""
    found, count = [], 0
    for position, argument in enumerate(args):
        if isinstance(argument, torch.Tensor):
            if position in positions:
                found.append(count)
            count += 1
    return tuple(found)


@contextlib.contextmanager
def noting_hooks(recorder):
    """Whether the step puts hooks of its own around saved tensors, which are then neither seen nor counted."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    enter = hooks.__enter__

    def noted(pair):
        recorder.hooked = True
        return enter(pair)

    hooks.__enter__ = noted
    try:
        yield
    finally:
        hooks.__enter__ = enter


def record(step):
    """The Graph of one iteration: runs `step()` once, with the effects that it has (gradients, random state).

    `step()` runs forward and backward once and returns the loss. Operators are timed one by one, so the first run
    of a process is slower than the next: run the step once before. Raises StepError where the step runs no backward
    pass, or runs it with retain_graph or create_graph.
    """
    if Tape.active:
        raise StepError("a step cannot be recorded while another one is recorded or runs by a plan")
    recorder = Recorder()
    with meter.Meter() as counted:
        with recorder, noting_hooks(recorder):
            start = time.perf_counter()
            loss = step()
            synchronize()
            seconds = time.perf_counter() - start
    return _graph(recorder, counted.peak, seconds, loss)


def peak(step):
    """The most bytes of saved tensors that are held at a time while `step()` runs, each storage once.

    Parameters and inputs do not count. Under `applied(plan)`, inside `step` or around this call, what the plan holds and
    makes again is counted.
    """
    with meter.Meter() as counted, contextlib.nullcontext() if Tape.active else Recorder():
        step()
    return counted.peak


def _graph(tape, peak, seconds, loss):
    if not tape.nodes:
        raise StepError("the step ran no backward pass that reads saved tensors: record(step) needs a step() that "
                        "runs forward and backward" + (HOOKED if tape.hooked else ""))
    if tape.open:
        raise StepError("saved tensors are still held behind the backward pass (retain_graph or create_graph): such "
                        "steps cannot be recorded")
    saved = [None if value is None else value.id for value in tape.saved]
    _fix(tape)
    for node in tape.nodes:
        node.reads = sorted({saved[handle] for handle in node.handles if saved[handle] is not None})
    builder = UnitBuilder(tape.recorded, tape.values, set(saved), tape.fixed, tape.random_calls, tape.seconds, tape.stats)
    units, maker = builder.build()
    detached = loss.detach() if isinstance(loss, torch.Tensor) else None
    return Graph(units, tape.nodes, tape.values, saved, [call.signature() for call in tape.recorded], tape.packs,
                 tape.events, tape.random_calls, tape.stats, tape.dirty, peak, seconds, detached, maker,
                 tape.hooked)


def _fix(tape):
    """Calls that would not do the same again behind the forward pass."""
    for value in tape.dirty:
        for number in {tape.values[value].call, *tape.readers.get(value, ())} - {None}:
            tape.fixed.setdefault(number, "reads or makes what is written by other means than operators")
    last = tape.nodes[-1].event
    for number, call in enumerate(tape.recorded):
        skipped = tape.stats.get(number, ())
        for position, (value, _) in enumerate(call.refs):
            if value is None or position in skipped or not tape.values[value].external:
                continue
            ended = tape.values[value].overwritten
            if ended is not None and ended < last:
                tape.fixed.setdefault(number, "reads an input that is overwritten before the backward pass ends")
        if any(tape.values[new].external and position not in skipped for position, _, new in call.writes):
            tape.fixed.setdefault(number, "writes to a tensor that was there before the step")
        name = call.func._schema.name.split("::")[-1]
        if name in _UNWRITTEN and any(tape.values[value].overwritten is None for _, value in call.fresh):
            tape.fixed.setdefault(number, "is filled by other means than operators")
