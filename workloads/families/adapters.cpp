#include "workloads/families/adapters.h"

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"

namespace tessera {

Tensor Adapters::added(Tape& tape, const std::string& name, const Tensor& x,
                       const Tensor& y) const {
  if (!stand_beside(name)) return y;
  const std::string lora = name + ".lora";
  const Tensor in = tape.adapter_parameter(lora + "_a.weight", {rank_, x.shape.last()});
  const Tensor out = tape.adapter_parameter(lora + "_b.weight", {y.shape.last(), rank_});
  const Tensor narrow = linear_over_last(tape, lora + "_a", x, in, {});
  const Tensor wide = linear_over_last(tape, lora + "_b", narrow, out, {});
  return add(tape, lora + ".add", y, scale(tape, lora + ".scale", wide));
}

}  // namespace tessera
