#include "workloads/ops/attention/packed_attention.h"

#include "workloads/ops/pointwise.h"
#include "workloads/ops/python_calls.h"

namespace tessera {

std::vector<Tensor> unbind(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim) {
  Sizes sizes = x.sizes();
  Sizes strides = x.shape.strides();
  const std::int64_t count = sizes[dim];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  std::vector<Tensor> slices;
  for (std::int64_t i = 0; i < count; ++i)
    slices.push_back(tape.alias(x, StridedShape(sizes, strides)));
  tape.differentiable({x}, slices, [=](Tape& t, auto gradients) {
    const Tensor all = t.make(name + ".grad", StridedShape(x.sizes()), x.precision);
    std::vector<Tensor> given;
    for (const Tensor& gradient : gradients) {
      if (gradient.storage.valid()) given.push_back(gradient);
    }
    t.launch(name + ".stack", pointwise_kernel(all, 0, KernelKind::copy), given,
             std::span(&all, 1));
    t.add_gradient(x, all);
  });
  return slices;
}

Tensor rope_in_place(Tape& tape, const std::string& name, const Tensor& x, std::int64_t positions) {
  const Tensor table = tape.input("rotary.table", {positions, x.shape.last()}, Precision::fp32);
  tape.launch(name, pointwise_kernel(x, 6), {x, table}, {x});
  tape.python_calls(kRotary);
  const Tensor turned = tape.written_over(x);
  tape.differentiable({x}, turned, [=](Tape& t, auto gradients) {
    const Tensor& gradient = gradients[0];
    t.launch(name + ".backward", pointwise_kernel(gradient, 6), {gradient, table}, {gradient});
    t.python_calls(kRotary);
    t.add_gradient(x, gradient);
  });
  return turned;
}

void sequence_bounds(Tape& tape, const std::string& name, std::int64_t sequences,
                     std::int64_t positions) {
  const Tensor mask = tape.input("sequence_mask", {sequences, positions}, Precision::int8);
  for (const char* side : {".queries", ".keys"}) {
    const std::string part = name + side;
    const Tensor bounds = tape.make(part, StridedShape({sequences + 1}), Precision::fp32);
    tape.launch(part + ".zero", pointwise_kernel(bounds, 0, KernelKind::fill), {}, {bounds});
    const Tensor lengths = tape.make(part + ".sum", StridedShape({sequences}), Precision::fp32);
    tape.launch(part + ".sum", reduction_kernel(mask), {mask}, {lengths});
    tape.launch(part + ".cumsum", pointwise_kernel(lengths, 1), {lengths}, {bounds});
  }
}

}  // namespace tessera
