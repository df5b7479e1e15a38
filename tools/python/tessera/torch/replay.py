"""Runs operators of a step again, from values that are held, parameters and inputs."""

import contextlib

import torch
from torch.utils._pytree import tree_flatten

from . import storages
from .recording import StepError, generators_of


class StepChanged(StepError):
    """The step does something else than when it was recorded."""


class Recipe:
    """An operator with its arguments of this iteration; tensors made in the step are numbers of values."""

    __slots__ = ("args", "func", "generators", "kwargs", "outside")

    def __init__(self, func, args, kwargs, refs, values, stats, random):
        self.func = func
        self.outside = []  # (tensor, its version) of parameters and inputs

        def place(tensor, position):
            value, geometry = refs[position]
            if position in stats:
                return _Scratch(geometry)
            if value is not None and not values[value].external:
                return _Slot(value, geometry)
            self.outside.append((tensor, tensor._version))
            return tensor.detach()

        self.args, self.kwargs = storages.with_tensors((args, kwargs), place)
        self.generators = [(one, one.get_state()) for one in generators_of(kwargs)] if random else []

    def check(self):
        for tensor, version in self.outside:
            if tensor._version != version:
                raise StepChanged(f"{self.func} cannot run again: a parameter or input of shape {list(tensor.shape)} was "
                                  "written between the forward and the backward pass")

    def run(self, storage_of_value):
        """The operator's results; `storage_of_value(value)` gives the storage of a tensor of the step."""
        self.check()

        def fill(leaf):
            if isinstance(leaf, _Slot):
                return storages.view_of(storage_of_value(leaf.value), leaf.geometry)
            return leaf.zeros() if isinstance(leaf, _Scratch) else leaf

        args, kwargs = _map((self.args, self.kwargs), fill)
        with self._random_state():
            return self.func(*args, **kwargs)

    @contextlib.contextmanager
    def _random_state(self):
        now = [(generator, generator.get_state()) for generator, _ in self.generators]
        for generator, state in self.generators:
            generator.set_state(state)
        try:
            yield
        finally:
            for generator, state in now:
                generator.set_state(state)


class _Slot:
    """A tensor of the step, by value."""

    def __init__(self, value, geometry):
        self.value, self.geometry = value, geometry


class _Scratch:
    """Running statistics: written by the operator and read by nobody. They must not move a second time."""

    def __init__(self, geometry):
        self.geometry = geometry

    def zeros(self):
        return torch.zeros(self.geometry.size, dtype=self.geometry.dtype, device=self.geometry.device)


def _map(tree, change):
    leaves, shape = tree_flatten(tree)
    return storages.tree_unflatten([change(leaf) for leaf in leaves], shape)


def run_unit(unit, graph, recipes, held):
    """Runs a unit again; {value: storage} of what it makes. `held(value)`: the storage of a value that it reads."""
    made = {}

    def storage_of_value(value):
        return made[value] if value in made else held(value)

    for number in unit.calls:
        _, refs, outs, fresh, writes = graph.signatures[number]
        writes = [write for write in writes if not graph.values[write[2]].external]
        for position, old, _ in writes:
            made[old] = _own(storage_of_value(old), old in made, refs[position][1].device)
        result = list(storages.leaves_in(recipes[number].run(storage_of_value)))
        for position, value in fresh:
            if storages.geometry_of(result[position]) != outs[position][1]:
                raise StepChanged(f"{recipes[number].func} makes another shape when it runs again")
            made[value] = storages.storage_of(result[position])
        for _, old, new in writes:
            made[new] = made.pop(old)
    return {value: made[value] for value in unit.makes}


def _own(storage, ours, device):
    """A storage to write to: that of a held tensor is copied first."""
    if ours:
        return storage
    return storages.storage_of(storages.bytes_of(storage, device).clone())
