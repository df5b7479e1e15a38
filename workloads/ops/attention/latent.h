#pragma once

#include <string>

#include "workloads/graph/tape.h"

namespace tessera {

// Kernels of latent attention's rotary embedding, e = bytes of an element. Source: Megatron-Core
// fusions/fused_mla_yarn_rope_apply.py.

/// Turns the last `rope` numbers of every head of x [s, b, heads, d] in place: 2e of those; the
/// same backward. Saves nothing.
Tensor rotated_part(Tape& tape, const std::string& name, const Tensor& x, std::int64_t rope,
                    std::int64_t positions);

struct KeysValues {
  Tensor keys, values;
};
/// Keys [s, b, heads, nope + rope] and values [s, b, heads, v] of `kv` [s, b, heads, nope + v] and
/// the key part `turned` [s, b, rope] that all heads share, which is turned on the way: one kernel
/// that reads both and writes both; backward one kernel the other way round. Saves nothing.
KeysValues latent_keys_values(Tape& tape, const std::string& name, const Tensor& kv,
                              const Tensor& turned, std::int64_t v, std::int64_t positions);

}  // namespace tessera
