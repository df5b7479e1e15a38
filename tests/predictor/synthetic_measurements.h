#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "predictor/roofline.h"
#include "tests/predictor/test_gpus.h"
#include "tests/predictor/test_kernels.h"

namespace tessera {

inline constexpr const char* kMeasurementHeader =
    "gpu,op,split,batch,m,n,k,rows,cols,latency_us,kernel_name,grid_x,grid_y,grid_z\n";

inline std::string product_row(const std::string& gpu, const char* op, const Kernel& kernel,
                               double microseconds, const char* split = "train") {
  return gpu + "," + op + "," + split + "," + std::to_string(kernel.batch) + "," +
         std::to_string(kernel.m) + "," + std::to_string(kernel.n) + "," +
         std::to_string(kernel.k) + ",,," + std::to_string(microseconds) +
         ",volta_sgemm_128x64_tn,1,1,1\n";
}

inline std::string vector_row(const std::string& gpu, const char* op, std::int64_t rows,
                              std::int64_t cols, double microseconds) {
  return gpu + "," + op + ",train,,,,," + std::to_string(rows) + "," + std::to_string(cols) + "," +
         std::to_string(microseconds) + ",,1,1,1\n";
}

/// Timings of an imaginary run: every kernel takes `slowdown` times its roofline behind a floor of
/// 30 us; linear rows `linear_slowdown` times.
inline std::string synthetic_rows(const std::string& id, double slowdown, double linear_slowdown) {
  const GpuTraits gpu = gpu_traits(test_gpu(id));
  const auto timed = [&](const Kernel& kernel, double factor) {
    return std::max(30.0, 15 + factor * 1e6 * roofline_seconds(kernel, gpu));
  };
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t size = 256 + 61 * i;
    const Kernel linear = linear_kernel(size, size + 96, 2 * size);
    text += product_row(id, "linear", linear, timed(linear, linear_slowdown));
    const Kernel batched = batched_kernel(1 + i % 7, size, size / 2 + 200, size);
    text += product_row(id, "bmm", batched, timed(batched, slowdown));
    const Kernel row = row_kernel(KernelKind::softmax, 100 * (i + 1), 32 * (i + 1));
    for (const char* op : {"gelu", "softmax", "layer_norm"})
      text += vector_row(id, op, row.rows, row.cols, timed(row, slowdown));
    Kernel add = row;
    add.bytes_read *= 2;
    text += vector_row(id, "add", row.rows, row.cols, timed(add, slowdown));
  }
  return text;
}

}  // namespace tessera
