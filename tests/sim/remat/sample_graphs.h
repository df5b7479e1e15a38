#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/remat/graph.h"
#include "sim/remat/portable_math.h"

namespace tessera::remat::test {

/// Any small DAG: 1 to 12 operators, some with several or no outputs, workspace, kept tensors,
/// operators of zero time or size, a few that cannot run again.
inline Graph random_graph(Random& random, int most_ops = 12) {
  const int n = 1 + random.below(most_ops);
  std::vector<OpSpec> ops(n);
  TensorId tensors = 0;
  for (OpSpec& op : ops) {
    op.time = random.below(8);
    op.workspace = random.below(4) == 0 ? random.below(5) : 0;
    op.recomputable = random.below(12) != 0;
    const int reads = std::min<int>(tensors, random.below(4));
    for (int k = 0; k < reads; ++k) {
      const bool near = random.below(2) == 0;
      op.inputs.push_back(near ? std::max(0, tensors - 1 - random.below(3))
                               : random.below(tensors));
    }
    const int makes = random.below(8) == 0 ? random.below(4) : 1;
    for (int k = 0; k < makes; ++k) op.out_bytes.push_back(random.below(10));
    tensors += makes;
  }
  std::vector<TensorId> keep;
  for (TensorId q = 0; q < tensors; ++q)
    if (random.below(10) == 0 || q + 1 == tensors) keep.push_back(q);
  return Graph("random", ops, keep, random.below(20));
}

/// Forward, loss, backward of `layers` layers: layer i reads the tensor of layer i - 1, its
/// backward operator reads the gradient and the tensor of layer i - 1. All times `forward` and
/// `backward` with a loss of 1, all tensors `bytes`, gradients `gradient_bytes`.
inline Graph chain_graph(int layers, Nanoseconds forward, Nanoseconds backward, ByteCount bytes,
                         ByteCount gradient_bytes) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < layers; ++i) {
    OpSpec op{.name = "f" + std::to_string(i), .time = forward, .out_bytes = {bytes}};
    if (i > 0) op.inputs = {i - 1};
    ops.push_back(op);
  }
  ops.push_back({.name = "loss", .time = 1, .inputs = {layers - 1}, .out_bytes = {gradient_bytes}});
  for (int i = layers - 1; i >= 0; --i) {
    OpSpec op{.name = "b" + std::to_string(i), .time = backward, .out_bytes = {gradient_bytes}};
    op.inputs = {static_cast<TensorId>(ops.size()) - 1};
    if (i > 0) op.inputs.push_back(i - 1);
    ops.push_back(op);
  }
  return Graph("chain", ops, {static_cast<TensorId>(ops.size()) - 1}, 0, layers + 1);
}

/// A training step of transformer-like layers of 9 forward and 18 backward operators, at least
/// `least_ops` operators in all.
inline Graph transformer_graph(int least_ops) {
  constexpr Nanoseconds kTimes[9] = {20, 300, 150, 40, 150, 100, 20, 400, 400};
  constexpr ByteCount kSizes[9] = {2, 6, 8, 8, 2, 2, 2, 8, 2};
  constexpr ByteCount kMegabyte = 1'000'000;
  const int layers = (least_ops + 26) / 27;
  std::vector<OpSpec> ops;
  TensorId last = -1;
  for (int layer = 0; layer < layers; ++layer) {
    const TensorId entry = last;
    for (int k = 0; k < 9; ++k) {
      OpSpec op{.time = kTimes[k] * 1000, .out_bytes = {kSizes[k] * kMegabyte}};
      if (last >= 0) op.inputs.push_back(last);
      if (k == 5 && entry >= 0) op.inputs.push_back(entry);  // residual
      last = static_cast<TensorId>(ops.size());
      ops.push_back(op);
    }
  }
  TensorId gradient = last;
  for (int i = 9 * layers - 1; i >= 0; --i) {
    const int k = i % 9;
    OpSpec data{.time = kTimes[k] * 1000,
                .inputs = {gradient, i},
                .out_bytes = {kSizes[(k + 8) % 9] * kMegabyte}};
    if (i > 0) data.inputs.push_back(i - 1);
    OpSpec weight{.time = kTimes[k] * 1000, .inputs = {gradient}, .out_bytes = {0}};
    if (i > 0) weight.inputs.push_back(i - 1);
    gradient = static_cast<TensorId>(ops.size());
    ops.push_back(data);
    ops.push_back(weight);
  }
  return Graph("transformer", ops, {}, 0, 9 * layers);
}

}  // namespace tessera::remat::test
