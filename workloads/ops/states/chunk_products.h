#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tape.h"

namespace tessera {

/// Products of one kernel: `macs` multiply-adds for each of `batch` results of m x n.
struct ChunkProducts {
  std::int64_t batch, m, n, macs;
};

/// A kernel with one or several products, which counts as one product of the same arithmetic.
inline void launch_products(Tape& tape, const std::string& name, const ChunkProducts& p,
                            const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) {
  Kernel kernel;
  kernel.kind = KernelKind::batched_gemm;
  kernel.precision = tape.precision();
  kernel.batch = p.batch;
  kernel.m = p.m;
  kernel.n = p.n;
  kernel.k = p.macs;
  kernel.flops = Flops(2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) *
                       static_cast<double>(p.n) * static_cast<double>(p.macs));
  tape.launch(name, kernel, reads, writes);
}

}  // namespace tessera
