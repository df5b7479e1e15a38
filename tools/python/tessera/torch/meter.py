"""Counts the bytes that are held for backward passes: every storage once, however many tensors share it."""

import threading


class Meter:
    """`current` and `peak` bytes of held storages, between `start` and `stop` of this meter."""

    active = []
    lock = threading.RLock()

    def __init__(self):
        self.current = self.peak = 0
        self._held = {}

    def __enter__(self):
        Meter.active.append(self)
        return self

    def __exit__(self, *_):
        Meter.active.remove(self)

    def _change(self, storage, by):
        key = storage._cdata
        count = self._held.get(key, 0) + by
        if count < 0:
            return  # held since before this meter started
        if by > 0 and count == 1:
            self.current += storage.nbytes()
            self.peak = max(self.peak, self.current)
        if count:
            self._held[key] = count
        elif self._held.pop(key, 0):
            self.current -= storage.nbytes()


def hold(storage):
    """`storage` is held for backward (once more)."""
    with Meter.lock:
        for meter in Meter.active:
            meter._change(storage, 1)


def free(storage):
    """One holder of `storage` less."""
    with Meter.lock:
        for meter in Meter.active:
            meter._change(storage, -1)
