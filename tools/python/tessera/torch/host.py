"""Copies of tensors in host memory. On a GPU they pass over a stream of their own, from and to pinned memory."""

import torch

from . import storages


class HostStore:
    """Bytes of storages by value; `bytes` of all copies, which stay until the step is over."""

    def __init__(self):
        self._copies = {}
        self._streams = {}
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
        """The storage again, on its device."""
        copy, device = self._copies[value]
        if device.type != "cuda":
            return storages.storage_of(copy.clone())
        stream, current = self._stream(device), torch.cuda.current_stream(device)
        with torch.cuda.stream(stream):
            back = copy.to(device, non_blocking=True)
        current.wait_stream(stream)
        back.record_stream(current)
        return storages.storage_of(back)

    def _stream(self, device):
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]
