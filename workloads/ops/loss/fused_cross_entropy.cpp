#include "workloads/ops/loss/fused_cross_entropy.h"

#include "workloads/ops/megatron.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

Tensor per_token(Tape& tape, const std::string& name, std::int64_t tokens, std::int64_t numbers) {
  return tape.make(name, StridedShape({tokens, numbers}), Precision::fp32);
}

Tensor rows_of(Tape& tape, const Tensor& logits, std::int64_t tokens) {
  return reshape(tape, logits, {tokens, logits.shape.last()});
}

}  // namespace

Tensor native_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                            const Tensor& labels, int tensor) {
  const std::int64_t tokens = labels.elements();
  const Tensor rows = rows_of(tape, logits, tokens);
  const Tensor exact = tape.make(name + ".float", rows.shape.dense(), Precision::fp32);
  const Tensor highest = per_token(tape, name + ".max", tokens, 1);
  tape.launch(name + ".max", reduction_kernel(exact), {rows}, {exact, highest});
  tensor_all_reduce(tape, name + ".max.all_reduce", highest, tensor);
  const Tensor sums = per_token(tape, name + ".sums", tokens, 2);
  const Tensor softmax = tape.make(name + ".exp", exact.shape, Precision::fp32);
  tape.launch(name + ".exp", pointwise_kernel(exact, 4), {exact, highest, labels},
              {softmax, exact, sums});
  tensor_all_reduce(tape, name + ".sums.all_reduce", sums, tensor);
  const Tensor loss = tape.make(name + ".loss", StridedShape({tokens}), Precision::fp32);
  // Local variables of forward() and of the model hold them till here.
  const Access copy{exact.storage, Bytes(0)}, given{rows.storage, Bytes(0)};
  tape.launch_partial(name + ".div", pointwise_kernel(softmax, 2),
                      {whole(softmax), whole(sums), copy, given}, {whole(softmax), whole(loss)});
  tape.differentiable({logits}, loss, [=](Tape& t, auto gradients) {
    const Tensor grad = t.make(name + ".grad", softmax.shape, Precision::fp32);
    t.launch(name + ".backward", pointwise_kernel(grad, 2), {softmax, labels, gradients[0]},
             {grad});
    t.add_gradient(logits, cast(t, name + ".backward.cast",
                                t.alias(grad, StridedShape(logits.sizes())), logits.precision));
  });
  return loss;
}

Tensor engine_cross_entropy(Tape& tape, const std::string& name, const Tensor& logits,
                            const Tensor& labels, int tensor) {
  const std::int64_t tokens = labels.elements();
  const Tensor rows = rows_of(tape, logits, tokens);
  const Tensor statistics = per_token(tape, name + ".statistics", tokens, 3);
  tape.launch(name + ".online_softmax", reduction_kernel(rows), {rows, labels}, {statistics});
  Tensor all = statistics;
  if (tensor > 1) {
    all = per_token(tape, name + ".gathered", tokens * tensor, 3);
    tape.collective(OpKind::all_gather, name + ".all_gather", GroupKind::tensor, statistics, all);
    tape.wait();
  }
  const Tensor loss = tape.make(name + ".loss", StridedShape({tokens}), Precision::fp32);
  tape.launch(name + ".gradient", pointwise_kernel(rows, 4), {rows, all, labels}, {rows, loss});
  tape.differentiable({logits}, loss, [=](Tape& t, auto gradients) {
    t.launch(name + ".scale", pointwise_kernel(rows, 1), {rows, gradients[0]}, {rows});
    t.add_gradient(logits, t.alias(rows, StridedShape(logits.sizes())));
  });
  return loss;
}

}  // namespace tessera
