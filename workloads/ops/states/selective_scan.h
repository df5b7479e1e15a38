#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// Of Mamba-1: x, its step sizes and gate [b, channels, s], and what writes to and reads from the
/// state of every channel, [b, state, s].
struct ScanOperands {
  Tensor x, steps, written, read, gate;
};

/// What the states of all channels give, times silu of the gate, [b, channels, s]: one kernel,
/// which walks through a sequence and does 9 operations for each number of the state and 2 more;
/// backward one that does three times as many, and two casts of what all channels sum in fp32.
/// Trains A (16 bit, its exponential in fp32), D and what is added to the step sizes. Saves the
/// operands, its result without the gate, and two fp32 numbers per number of the state for every
/// 2,048 positions. Approximate in time: the kernel was never measured. Sources: mamba_ssm
/// ops/selective_scan_interface.py, SelectiveScanFn; csrc/selective_scan (both recalled); 9
/// operations: github.com/state-spaces/mamba/issues/110.
Tensor selective_scan(Tape& tape, const std::string& name, const ScanOperands& operands);

}  // namespace tessera
