#include "workloads/program/convolution.h"

#include <utility>

namespace tessera {
namespace {

std::int64_t out_extent(std::int64_t in, std::int32_t window, std::int32_t stride,
                        std::int32_t padding) {
  const std::int64_t room = in + 2 * std::int64_t{padding} - window;
  return room < 0 ? 0 : room / stride + 1;
}

/// Bytes read and written, each tensor once.
std::pair<std::int64_t, std::int64_t> traffic(const Kernel& kernel, std::int64_t input,
                                              ConvolutionPass pass) {
  const std::int64_t output = kernel.batch * kernel.m * kernel.n;
  const std::int64_t weight = kernel.batch * kernel.n * kernel.k;
  switch (pass) {
    case ConvolutionPass::data_gradient:
      return {output + weight, input};
    case ConvolutionPass::weight_gradient:
      return {input + output, weight};
    case ConvolutionPass::forward:
      break;
  }
  return {input + weight, output};
}

GemmLayout layout_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::data_gradient:
      return GemmLayout::nn;
    case ConvolutionPass::weight_gradient:
      return GemmLayout::nt;
    case ConvolutionPass::forward:
      break;
  }
  return GemmLayout::tn;
}

}  // namespace

std::int64_t Convolution::out_height() const {
  return out_extent(height, window, stride, padding);
}

std::int64_t Convolution::out_width() const {
  return out_extent(width, columns_of_window(), stride, window_width > 0 ? padding_width : padding);
}

Kernel convolution_kernel(const Convolution& c, ConvolutionPass pass, Precision precision) {
  Kernel kernel;
  kernel.kind = KernelKind::convolution;
  kernel.precision = precision;
  kernel.layout = layout_of(pass);
  kernel.m = c.batch * c.out_height() * c.out_width();
  kernel.batch = c.groups;
  kernel.n = c.out_channels / c.groups;
  kernel.k = c.in_channels / c.groups * c.window * c.columns_of_window();
  kernel.convolution = {.window = c.columns_of_window() == c.window ? c.window : 1,
                        .stride = c.stride,
                        .out_height = static_cast<std::int32_t>(c.out_height()),
                        .out_width = static_cast<std::int32_t>(c.out_width())};
  kernel.flops = Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                       static_cast<double>(kernel.n) * static_cast<double>(kernel.k));
  const auto [read, written] = traffic(kernel, c.batch * c.in_channels * c.height * c.width, pass);
  kernel.bytes_read = Bytes(element_bytes(precision) * read);
  kernel.bytes_written = Bytes(element_bytes(precision) * written);
  return kernel;
}

}  // namespace tessera
