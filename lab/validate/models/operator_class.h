#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

#include "lab/validate/models/operator_runs.h"
#include "workloads/graph/block.h"

namespace tessera {

/// What an operator does, as far as a trace of PyTorch and our graphs can be compared.
enum class OperatorClass : std::uint8_t {
  linear,  ///< nn.Linear, addmm
  matmul,  ///< matmul and bmm of activations
  softmax,
  layer_norm,
  elementwise,  ///< arithmetic and comparisons
  activation,   ///< gelu, relu, tanh, silu in one kernel
  embedding,
  dropout,
  movement,  ///< contiguous, clone, where, getitem, masked_fill, cat
  other,     ///< constants, reductions, scans
};
inline constexpr std::array kOperatorClasses{OperatorClass::linear,      OperatorClass::matmul,
                                             OperatorClass::softmax,     OperatorClass::layer_norm,
                                             OperatorClass::elementwise, OperatorClass::activation,
                                             OperatorClass::embedding,   OperatorClass::dropout,
                                             OperatorClass::movement,    OperatorClass::other};

std::string_view label_of(OperatorClass operator_class);

/// By which a timed operator and one of ours are taken for the same.
struct OperatorKey {
  OperatorClass operator_class = OperatorClass::other;
  std::int64_t elements = 0;     ///< of the output
  std::int64_t contraction = 0;  ///< of a product; else 0

  auto operator<=>(const OperatorKey&) const = default;
};

/// From the function's or module's name and the shapes.
OperatorKey key_of(const TimedOperator& timed);

/// From the kernel's kind and shape, and from the last word of the operator's name where kernels of
/// one kind serve several classes. `op` is a kernel of a forward pass.
OperatorKey key_of(const GraphOp& op);

}  // namespace tessera
