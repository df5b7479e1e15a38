#include "workloads/ops/attention/latent.h"

#include <array>

#include "workloads/ops/pointwise.h"

namespace tessera {

Tensor rotated_part(Tape& tape, const std::string& name, const Tensor& x, std::int64_t rope,
                    std::int64_t positions) {
  const Tensor table = tape.input("rotary.table", {positions, rope}, Precision::fp32);
  const auto turn = [=](Tape& t, const std::string& kernel_name, const Tensor& target) {
    const Access part{target.storage, Bytes(target.traffic().value() / target.shape.last() * rope)};
    const Tensor shape = t.alias(target, target.shape.narrowed(3, rope));
    t.launch_partial(kernel_name, pointwise_kernel(shape, 6),
                     {part, {table.storage, table.traffic()}}, {part});
  };
  turn(tape, name, x);
  const Tensor out = tape.written_over(x);
  tape.differentiable({x}, out, [=](Tape& t, auto gradients) {
    turn(t, name + ".backward", gradients[0]);
    t.add_gradient(x, t.alias(gradients[0], gradients[0].shape));
  });
  return out;
}

KeysValues latent_keys_values(Tape& tape, const std::string& name, const Tensor& kv,
                              const Tensor& turned, std::int64_t v, std::int64_t positions) {
  const std::int64_t rope = turned.shape.last();
  const Tensor table = tape.input("rotary.table", {positions, rope}, Precision::fp32);
  Sizes sizes = kv.sizes();
  sizes.back() = kv.shape.last() - v + rope;
  const Tensor keys = tape.make(name + ".keys", StridedShape(sizes), kv.precision);
  sizes.back() = v;
  const Tensor values = tape.make(name + ".values", StridedShape(sizes), kv.precision);
  tape.launch(name, pointwise_kernel(kv, 6), {kv, turned, table}, {keys, values});
  const std::array outputs{keys, values};
  tape.differentiable({kv, turned}, outputs, [=](Tape& t, auto gradients) {
    const Tensor grad_kv = t.make(name + ".kv.grad", kv.shape.dense(), kv.precision);
    const Tensor grad_turned = t.make(name + ".turned.grad", turned.shape.dense(), kv.precision);
    t.launch(name + ".backward", pointwise_kernel(grad_kv, 6), {gradients[0], gradients[1], table},
             {grad_kv, grad_turned});
    t.add_gradient(kv, grad_kv);
    t.add_gradient(turned, grad_turned);
  });
  return {keys, values};
}

}  // namespace tessera
