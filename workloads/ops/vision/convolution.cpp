#include "workloads/ops/vision/convolution.h"

#include <span>
#include <utility>
#include <vector>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"
#include "workloads/program/convolution.h"

namespace tessera {
namespace {

/// The kernel of one pass, whose traffic the launch counts.
Kernel kernel_of(const Tape& tape, const Convolution& convolution, ConvolutionPass pass) {
  Kernel kernel = convolution_kernel(convolution, pass, tape.gemm_precision());
  kernel.bytes_read = kernel.bytes_written = Bytes(0);
  return kernel;
}

void add_bias(Tape& tape, const std::string& name, const Tensor& out, const Tensor& bias) {
  Tensor column = bias;
  column.shape = StridedShape({bias.elements(), 1, 1});
  map_in_place(tape, name, out, {column});
}

void add_bias_gradient(Tape& tape, const std::string& name, const Tensor& bias,
                       const Tensor& gradient) {
  const Tensor sum = tape.make(name, bias.shape, gradient.precision);
  tape.launch(name, reduction_kernel(gradient), {gradient}, {sum});
  tape.add_gradient(bias, sum);
}

/// `image` with the channels of a pixel side by side, or back: a kernel within the library's call.
void reorder(Tape& tape, const std::string& name, const Tensor& from, const Tensor& to) {
  const int calls = tape.set_calls_per_launch(0);
  tape.launch(name + ".reorder", strided_copy(to), {from}, {to});
  tape.set_calls_per_launch(calls);
}

/// Whether the kernels take images as they lie: a forward product of single pixels, and the direct
/// kernels of convolutions in groups (conv2d_grouped_direct_kernel in profiles).
bool takes_any_order(const Convolution& c, ConvolutionPass pass) {
  const bool single_pixels = c.window == 1 && c.columns_of_window() == 1 && c.stride == 1;
  return c.groups > 1 || (pass == ConvolutionPass::forward && single_pixels);
}

/// One pass: `read` -> `result`. Tensor cores take operands with the channels of a pixel side by
/// side; where images do not lie so, cuDNN copies them, into its workspace. In 16 bit the result
/// comes in that order, too, and is copied back; kernels of tf32 write it as images lie.
void launch(Tape& tape, const std::string& name, const Convolution& shape, ConvolutionPass pass,
            std::vector<Tensor> read, const Tensor& result) {
  const Kernel kernel = kernel_of(tape, shape, pass);
  const bool sixteen_bits = element_bytes(kernel.precision) == 2;
  const bool on_tensor_cores = sixteen_bits || kernel.precision == Precision::tf32;
  if (!tape.reorders_images() || !on_tensor_cores || takes_any_order(shape, pass))
    return tape.launch(name, kernel, read, std::span(&result, 1));
  for (Tensor& operand : read) {
    const Tensor given = operand;
    operand = tape.make(name + ".operand", StridedShape(given.sizes()), given.precision);
    reorder(tape, name, given, operand);
  }
  if (!sixteen_bits) return tape.launch(name, kernel, read, std::span(&result, 1));
  const Tensor made = tape.make(name + ".made", result.shape, result.precision);
  tape.launch(name, kernel, read, std::span(&made, 1));
  reorder(tape, name, made, result);
}

/// What a layer's two directions share: out = pass(x, weight) and the other two passes backward.
struct Passes {
  ConvolutionPass forward;
  ConvolutionPass data_gradient;
};

Tensor run(Tape& tape, const std::string& name, const Tensor& x, const Tensor& weight,
           const StridedShape& out_shape, const Convolution& shape, Passes passes, bool bias) {
  const Tensor out = tape.make(name, out_shape);
  launch(tape, name, shape, passes.forward, {x, weight}, out);
  Tensor offset;
  if (bias) {
    offset = tape.parameter(name + ".bias", {out_shape.sizes()[1]});
    add_bias(tape, name + ".add_bias", out, offset);
  }
  const auto rule = [=](Tape& t, std::span<const Tensor> gradients) {
    const Tensor g = contiguous(t, name + ".grad_copy", gradients[0]);
    if (t.requires_gradient(x)) {
      const Tensor grad_x = t.make(name + ".dgrad", StridedShape(x.sizes()));
      launch(t, name + ".dgrad", shape, passes.data_gradient, {g, weight}, grad_x);
      t.add_gradient(x, grad_x);
    }
    const Tensor grad_weight = t.make(name + ".wgrad", weight.shape);
    launch(t, name + ".wgrad", shape, ConvolutionPass::weight_gradient, {x, g}, grad_weight);
    t.add_gradient(weight, grad_weight);
    if (bias) add_bias_gradient(t, name + ".bias_grad", offset, g);
  };
  if (bias) {
    tape.differentiable({x, weight, offset}, out, rule);
  } else {
    tape.differentiable({x, weight}, out, rule);
  }
  return out;
}

}  // namespace

Tensor conv2d(Tape& tape, const std::string& name, const Tensor& x, const ConvolutionLayer& layer) {
  const Sizes& in = x.sizes();
  const Convolution shape{.batch = in[0],
                          .in_channels = in[1],
                          .out_channels = layer.out_channels,
                          .height = in[2],
                          .width = in[3],
                          .window = layer.window,
                          .stride = layer.stride,
                          .padding = layer.padding,
                          .window_width = layer.window_width,
                          .padding_width = layer.padding_width,
                          .groups = layer.groups};
  const Tensor weight = tape.parameter(name + ".weight", {layer.out_channels, in[1] / layer.groups,
                                                          layer.window, shape.columns_of_window()});
  const StridedShape out({in[0], layer.out_channels, shape.out_height(), shape.out_width()});
  return run(tape, name, x, weight, out, shape,
             {ConvolutionPass::forward, ConvolutionPass::data_gradient}, layer.bias);
}

Tensor conv_transpose2d(Tape& tape, const std::string& name, const Tensor& x,
                        std::int64_t out_channels, std::int32_t window) {
  const Sizes& in = x.sizes();
  const Sizes grown{in[0], out_channels, in[2] * window, in[3] * window};
  const Convolution shape{.batch = in[0],
                          .in_channels = out_channels,
                          .out_channels = in[1],
                          .height = grown[2],
                          .width = grown[3],
                          .window = window,
                          .stride = window};
  const Tensor weight = tape.parameter(name + ".weight", {in[1], out_channels, window, window});
  return run(tape, name, x, weight, StridedShape(grown), shape,
             {ConvolutionPass::data_gradient, ConvolutionPass::forward}, true);
}

}  // namespace tessera
