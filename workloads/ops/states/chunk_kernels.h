#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/chunk_products.h"
#include "workloads/ops/states/delta_net.h"

namespace tessera {

/// Launches of a delta rule in chunks, whose tensors are named behind it.
class ChunkKernels {
 public:
  static constexpr std::int64_t kChunk = 64;  ///< positions; flash-linear-attention's chunk_size
  static constexpr std::int64_t kBlock = 16;  ///< rows of a triangle that are solved at once

  ChunkKernels(std::string name, const DeltaShape& shape) : name_(std::move(name)), shape_(shape) {}

 protected:
  std::int64_t key() const { return shape_.key_dim; }
  std::int64_t value() const { return shape_.value_dim; }
  std::int64_t rows() const { return shape_.sequences * shape_.positions * shape_.heads; }
  std::int64_t chunks() const {
    return shape_.sequences * shape_.heads * ((shape_.positions + kChunk - 1) / kChunk);
  }
  Sizes triangle() const { return {rows(), kChunk}; }
  /// `macs` for each of `width` results per position.
  ChunkProducts in_chunks(std::int64_t width, std::int64_t macs) const {
    return {chunks(), kChunk, width, macs};
  }
  /// `products` over all positions of a sequence, whose chunks wait for each other.
  ChunkProducts chain(std::int64_t products) const {
    return {shape_.sequences * shape_.heads, key(), value(), products * shape_.positions};
  }
  /// The inverse of unit triangles `pairs`, which is as large: by blocks, and then merged.
  void solve(Tape& tape, const Tensor& pairs, const Tensor& solved) const {
    const Tensor blocks = make(tape, ".blocks", {rows(), kBlock}, Precision::fp32);
    launch(tape, ".solve_blocks", blocks, kBlock, {pairs});
    multiply(tape, ".solve_merge", in_chunks(kChunk, kChunk / 2), {blocks, pairs}, {solved});
  }

  Tensor make(Tape& tape, const std::string& part, const Sizes& sizes, Precision precision) const {
    return tape.make(name_ + part, StridedShape(sizes), precision);
  }
  Tensor like(Tape& tape, const Tensor& x) const {
    return tape.make(tape.name_of(x) + ".grad", x.shape.dense(), x.precision);
  }
  void launch(Tape& tape, const char* part, const Tensor& out, double flops,
              const std::vector<Tensor>& reads) const {
    tape.launch(name_ + part, pointwise_kernel(out, flops), reads, std::vector{out});
  }
  void multiply(Tape& tape, const char* part, const ChunkProducts& p,
                const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) const {
    launch_products(tape, name_ + part, p, reads, writes);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  DeltaShape shape_;
};

}  // namespace tessera
