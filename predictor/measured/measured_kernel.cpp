// The kernels behind measured rows: shapes, FLOPs and compulsory traffic.
#include "predictor/measured/measurements.h"
#include "workloads/program/convolution.h"

namespace tessera {
namespace {

Kernel gemm_kernel(const KernelMeasurement& row) {
  Kernel kernel;
  const bool linear = row.op == MeasuredOp::linear;
  kernel.kind = linear ? KernelKind::gemm : KernelKind::batched_gemm;
  kernel.layout = linear ? row.layout : GemmLayout::nn;
  kernel.bias = linear;
  kernel.precision = row.precision;
  kernel.batch = linear ? 1 : row.batch;
  kernel.m = linear ? row.batch * row.m : row.m;
  kernel.n = row.n;
  kernel.k = row.k;
  const std::int64_t b = kernel.batch, m = kernel.m, n = kernel.n, k = kernel.k;
  kernel.flops = Flops(2.0 * static_cast<double>(b * m) * static_cast<double>(n * k));
  const std::int64_t size = element_bytes(row.precision);
  kernel.bytes_read = Bytes(size * (b * (m * k + k * n) + (linear ? n : 0)));
  kernel.bytes_written = Bytes(size * b * m * n);
  if (row.accumulate) {  // the FP32 output is read and written
    kernel.bytes_read += Bytes(4 * m * n);
    kernel.bytes_written = Bytes(4 * m * n);
  }
  return kernel;
}

Kernel conv2d_kernel(const KernelMeasurement& row) {
  return convolution_kernel({.batch = row.batch,
                             .in_channels = row.k,
                             .out_channels = row.n,
                             .height = row.rows,
                             .width = row.cols,
                             .window = row.window,
                             .stride = row.stride,
                             .padding = row.padding},
                            ConvolutionPass::forward, row.precision);
}

KernelKind vector_kind(MeasuredOp op) {
  if (op == MeasuredOp::softmax) return KernelKind::softmax;
  if (op == MeasuredOp::layer_norm) return KernelKind::layer_norm;
  return KernelKind::elementwise;
}

}  // namespace

Kernel kernel_of(const KernelMeasurement& row) {
  if (row.op == MeasuredOp::linear || row.op == MeasuredOp::bmm) return gemm_kernel(row);
  if (row.op == MeasuredOp::conv2d) return conv2d_kernel(row);
  Kernel kernel;
  kernel.kind = vector_kind(row.op);
  kernel.rows = row.rows;
  kernel.cols = row.cols;
  kernel.precision = row.precision;
  const std::int64_t tensor = element_bytes(row.precision) * row.rows * row.cols;
  const bool two_inputs = row.op >= MeasuredOp::add && row.op <= MeasuredOp::pow;
  kernel.bytes_read = Bytes(two_inputs ? 2 * tensor : tensor);
  kernel.bytes_written = Bytes(tensor);
  kernel.flops = Flops(static_cast<double>(row.rows) * static_cast<double>(row.cols));
  return kernel;
}

}  // namespace tessera
