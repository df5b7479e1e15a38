"""Blocks of a model as `tessera show graph` prints them."""

import re

BLOCK = re.compile(r"^(\S.*) \(x (\d+)\): (\d+) parameters, ([\d.]+) MB saved for backward")
PASS = re.compile(r"^ (forward|backward): (\d+) kernels, ([\d.]+) GFLOP")


class Block:
    """`forward` and `backward`: kernels and GFLOP of products and convolutions."""

    def __init__(self, count, parameters, saved):
        self.count, self.parameters, self.saved = int(count), int(parameters), float(saved) * 1e6
        self.forward = self.backward = (0, 0.0)


def blocks_of(text):
    blocks, block = {}, None
    for line in text.splitlines():
        if found := BLOCK.match(line):
            block = blocks[found[1]] = Block(*found.groups()[1:])
        elif found := PASS.match(line):
            setattr(block, found[1], (int(found[2]), float(found[3])))
    return blocks
