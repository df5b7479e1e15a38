#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

/// Rows of `table` [V, h] at `ids` (int64): 2e per element and 8 bytes per token; backward: zero
/// fill of a dense gradient (V h e) and a scatter, with the indices sorted first above 3072 tokens.
/// Source: PyTorch aten/src/ATen/native/cuda/Embedding.cu.
Tensor embedding(Tape& tape, const std::string& name, const Tensor& table, const Tensor& ids);

}  // namespace tessera
