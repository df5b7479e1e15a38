"""Storages, and tensors as views of them: shape, strides and place apart from the bytes."""

from typing import NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_flatten, tree_unflatten


class Geometry(NamedTuple):
    """How a tensor lies in its storage; sizes, strides and offset count elements of `dtype`."""

    dtype: object
    device: object
    size: tuple
    stride: tuple
    offset: int


# The untyped storage of a tensor, by its name in PyTorch 2 or before.
storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage


def is_plain(tensor):
    """Whether `tensor` is a strided view of a storage and nothing else (no conjugate, sparse, quantized, subclass)."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
            and tensor.device.type != "meta" and not tensor.is_quantized and not tensor.is_conj() and not tensor.is_neg())


def geometry_of(tensor):
    return Geometry(tensor.dtype, tensor.device, tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset())


def view_of(storage, geometry):
    """A tensor over `storage`. Strides and offset are those of the first run, so that kernels choose the same path."""
    empty = torch.empty(0, dtype=geometry.dtype, device=geometry.device)
    return empty.set_(storage, geometry.offset, geometry.size, geometry.stride)


def bytes_of(storage, device):
    """`storage` as a tensor of bytes, for copies of the whole."""
    size = storage.nbytes()
    return view_of(storage, Geometry(torch.uint8, device, (size,), (1,), 0))


def leaves_in(arguments):
    """All leaves of nested lists, tuples and dicts, in order, as tree_flatten lists them but several times faster."""
    kind = type(arguments)
    if kind is tuple or kind is list:
        for argument in arguments:
            if type(argument) in (tuple, list, dict):
                yield from leaves_in(argument)
            else:
                yield argument
    elif kind is dict:
        yield from leaves_in(tuple(arguments.values()))
    else:
        yield arguments


def tensors_in(arguments):
    """All tensors in nested lists, tuples and dicts, in order."""
    return [leaf for leaf in leaves_in(arguments) if isinstance(leaf, torch.Tensor)]


def with_tensors(arguments, change):
    """`arguments` with `change(tensor, number)` in place of every tensor."""
    leaves, shape = tree_flatten(arguments)
    number = -1
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            number += 1
            leaves[index] = change(leaf, number)
    return tree_unflatten(leaves, shape)


class StorageRecord:
    """What a tape knows of a storage. The weak reference lets the bytes go, but no other storage takes its address."""

    __slots__ = ("external", "key", "value", "weak")

    def __init__(self, storage, external, value):
        self.weak = StorageWeakRef(storage)
        self.key = storage._cdata
        self.external = external
        self.value = value
