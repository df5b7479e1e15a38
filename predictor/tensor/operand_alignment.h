#pragma once

#include "workloads/program/kernel.h"

namespace tessera {

/// Whether rows of the operands or of the result of a product start off 16 bytes, which rules the
/// fast tensor-core kernels out: they load and store 16 bytes at a time.
bool rows_off_16_bytes(const Kernel& product);

/// Whether a product that tensor cores could do runs on the FP32 units all the same: batched
/// products of 16-bit operands whose rows start off 16 bytes. Read off two measured steps that
/// differ in the size of a head alone (docs/decisions/0018-products-off-16-bytes.md); single
/// products have slower tensor-core kernels for such operands.
bool leaves_tensor_cores(const Kernel& product);

}  // namespace tessera
