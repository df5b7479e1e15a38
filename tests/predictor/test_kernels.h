#pragma once

#include <cstdint>

#include "workloads/program/kernel.h"

namespace tessera {

inline Kernel linear_kernel(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::gemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = Flops(2.0 * static_cast<double>(m * n) * static_cast<double>(k));
  kernel.bytes_read = Bytes(4 * (m * k + k * n));
  kernel.bytes_written = Bytes(4 * m * n);
  return kernel;
}

inline Kernel batched_kernel(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel = linear_kernel(m, n, k);
  kernel.kind = KernelKind::batched_gemm;
  kernel.layout = GemmLayout::nn;
  kernel.batch = batch;
  kernel.flops *= static_cast<double>(batch);
  kernel.bytes_read *= batch;
  kernel.bytes_written *= batch;
  return kernel;
}

/// One read and one write of rows x cols.
inline Kernel row_kernel(KernelKind kind, std::int64_t rows, std::int64_t cols) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.rows = rows;
  kernel.cols = cols;
  kernel.flops = Flops(static_cast<double>(rows * cols));
  kernel.bytes_read = Bytes(4 * rows * cols);
  kernel.bytes_written = Bytes(4 * rows * cols);
  return kernel;
}

}  // namespace tessera
