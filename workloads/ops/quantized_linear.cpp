#include "workloads/ops/quantized_linear.h"

#include <optional>
#include <utility>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

constexpr std::int64_t kCodesPerByte = 2;
constexpr std::int64_t kPerScale = 64;         // quantize_4bit, blocksize
constexpr std::int64_t kScalesPerScale = 256;  // quantize_blockwise, of double quantization

constexpr std::int64_t parts(std::int64_t all, std::int64_t each) {
  return (all + each - 1) / each;
}

/// A frozen matrix of `out` rows and `in` columns.
class QuantizedMatrix {
 public:
  QuantizedMatrix(Tape& tape, std::string name, std::int64_t out, std::int64_t in)
      : name_(std::move(name)), sizes_{out, in} {
    const std::int64_t scales = parts(out * in, kPerScale);
    codes_ = tape.buffer(name_, {parts(out * in, kCodesPerByte)}, Precision::int8);
    const bool twice = tape.quantizes_scales();
    scales_ = tape.buffer(name_ + ".absmax", {scales}, twice ? Precision::int8 : Precision::fp32);
    if (twice)
      of_scales_ =
          tape.buffer(name_ + ".absmax.absmax", {parts(scales, kScalesPerScale)}, Precision::fp32);
  }

  /// In the format of activations.
  Tensor made(Tape& tape) const {
    const Tensor scales = made_scales(tape);
    const Tensor matrix = tape.make(name_ + ".dequantize", StridedShape(sizes_));
    tape.launch(name_ + ".dequantize", pointwise_kernel(matrix, 0), {codes_, scales}, {matrix});
    return matrix;
  }

 private:
  Tensor made_scales(Tape& tape) const {
    if (!of_scales_) return scales_;
    const Tensor scales =
        tape.make(name_ + ".absmax.dequantize", scales_.shape.dense(), Precision::fp32);
    tape.launch(name_ + ".absmax.dequantize", pointwise_kernel(scales, 0), {scales_, *of_scales_},
                {scales});
    const Tensor moved = tape.written_over(scales);
    tape.launch(name_ + ".absmax.offset", pointwise_kernel(scales, 1), {scales}, {moved});
    return moved;
  }

  std::string name_;
  Sizes sizes_;
  Tensor codes_, scales_;
  std::optional<Tensor> of_scales_;
};

}  // namespace

Tensor quantized_linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                        Bias bias) {
  const std::int64_t in = x.shape.last();
  const QuantizedMatrix weight(tape, name + ".weight", out, in);
  std::optional<Tensor> added;
  if (bias != Bias::none) added = tape.parameter(name + ".bias", {out});
  const Tensor rows = reshape(tape, x, {x.elements() / in, in});
  const Tensor matrix = transposed(tape, weight.made(tape));
  const Tensor result = product_output(tape, name, rows, matrix);
  product_to(tape, name, rows, matrix, added, result);
  tape.differentiable({rows}, result, [=](Tape& t, auto gradients) {
    if (!t.requires_gradient(rows)) return;
    t.add_gradient(rows, product(t, name + ".dgrad", gradients[0], weight.made(t)));
  });
  Sizes sizes = x.sizes();
  sizes.back() = out;
  return view(tape, result, sizes);
}

}  // namespace tessera
