"""Copies of tensors in host memory. On a GPU they pass over a stream of their own, from and to pinned memory."""

import torch

from . import storages


class HostStore:
    """Bytes of storages by value; `bytes` of all copies, which stay until the step is over."""

    def __init__(self):
        self._copies = {}
        self._streams = {}
        self._arrivals = {}
        self.bytes = 0

    def __contains__(self, value):
        return value in self._copies

    def put(self, value, storage, device):
        """Copies `storage` to the host; the storage may be freed at once."""
        if value in self._copies:
            return
        source = storages.bytes_of(storage, device)
        if device.type == "cuda":
            copy = torch.empty(source.numel(), dtype=torch.uint8, pin_memory=True)
            stream = self._stream(device)
            stream.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(stream):
                copy.copy_(source, non_blocking=True)
            source.record_stream(stream)
        else:
            copy = source.clone()
        self._copies[value] = (copy, device)
        self.bytes += copy.numel()

    def get(self, value):
        """The storage again, on its device. Its bytes are there behind `wait_for(value)`."""
        copy, device = self._copies[value]
        if device.type != "cuda":
            return storages.storage_of(copy.clone())
        stream = self._stream(device)
        back = torch.empty(copy.numel(), dtype=torch.uint8, device=device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            back.copy_(copy, non_blocking=True)
        back.record_stream(stream)
        self._arrivals[value] = stream.record_event()
        return storages.storage_of(back)

    def wait_for(self, value):
        """Operators that are started from here on see what `get(value)` brings."""
        arrival = self._arrivals.pop(value, None)
        if arrival is not None:
            torch.cuda.current_stream(self._copies[value][1]).wait_event(arrival)

    def _stream(self, device):
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]
