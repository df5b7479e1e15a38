#include "workloads/ops/experts/weighted_bias.h"

#include <utility>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// The rows of an expert, and its bias.
Tensor part_of_rows(const Tensor& of, std::int64_t rows) {
  Tensor result = of;
  result.shape = StridedShape({rows, of.shape.last()});
  return result;
}
Tensor bias_of_expert(const Tensor& bias) {
  Tensor result = bias;
  result.shape = StridedShape({bias.shape.last()});
  return result;
}

Tensor bias_parameter(Tape& tape, const std::string& name, const Tensor& rows,
                      const std::vector<std::int64_t>& loads) {
  return tape.expert_parameter(name + ".bias",
                               {static_cast<std::int64_t>(loads.size()), rows.shape.last()});
}

class WeightedBias {
 public:
  WeightedBias(std::string name, const Tensor& rows, const Tensor& weights, const Tensor& bias,
               std::vector<std::int64_t> loads)
      : name_(std::move(name)),
        rows_(rows),
        weights_(weights),
        bias_(bias),
        loads_(std::move(loads)) {}

  Tensor forward(Tape& tape) const {
    const Tensor weighed = make(tape, ".weighed", Precision::fp32);
    const Tensor sums = make(tape, ".sums", Precision::fp32);
    for (const std::int64_t load : loads_) {
      if (load == 0) continue;
      launch(tape, ".weigh", {bias_of_expert(bias_), weights_of(load)},
             part_of_rows(weighed, load));
      launch(tape, ".add", {part_of_rows(rows_, load), part_of_rows(weighed, load)},
             part_of_rows(sums, load));
    }
    const Tensor joined = make(tape, ".joined", Precision::fp32);
    launch(tape, ".cat", {sums}, joined);
    const Tensor out = make(tape, "", rows_.precision);
    launch(tape, ".to", {joined}, out);
    return out;
  }

  void backward(Tape& tape, const Tensor& gradient) const {
    const Tensor exact = make(tape, ".grad", Precision::fp32);
    launch(tape, ".to.backward", {gradient}, exact);
    const Tensor narrow = make(tape, ".rows.parts", rows_.precision);
    const Tensor product = make(tape, ".product", Precision::fp32);
    const Tensor of_bias = tape.make(name_ + ".bias.grad", bias_.shape, bias_.precision);
    const Tensor of_weights = tape.make(name_ + ".weights.grad", weights_.shape, Precision::fp32);
    for (const std::int64_t load : loads_) {
      if (load == 0) continue;
      const Tensor from = part_of_rows(exact, load), to = part_of_rows(product, load);
      launch(tape, ".rows.to", {from}, part_of_rows(narrow, load));
      launch(tape, ".times_weights", {from, weights_of(load)}, to);
      sum(tape, ".bias.sum", to, bias_of_expert(of_bias));
      launch(tape, ".times_bias", {from, bias_of_expert(bias_)}, to);
      Tensor of_part = of_weights;
      of_part.shape = StridedShape({load});
      sum(tape, ".weights.sum", to, of_part);
    }
    const Tensor of_rows = make(tape, ".rows.grad", rows_.precision);
    launch(tape, ".split.backward", {narrow}, of_rows);
    tape.add_gradient(rows_, of_rows);
    tape.add_gradient(bias_, of_bias);
    tape.add_gradient(weights_, of_weights);
  }

 private:
  Tensor make(Tape& tape, const char* suffix, Precision precision) const {
    return tape.make(name_ + suffix, rows_.shape.dense(), precision);
  }
  Tensor weights_of(std::int64_t rows) const {
    Tensor result = weights_;
    result.shape = StridedShape({rows});
    return result;
  }
  void launch(Tape& tape, const char* suffix, const std::vector<Tensor>& reads,
              const Tensor& out) const {
    tape.launch(name_ + suffix, pointwise_kernel(out, 1), reads, std::vector{out});
  }
  void sum(Tape& tape, const char* suffix, const Tensor& from, const Tensor& to) const {
    tape.launch(name_ + suffix, reduction_kernel(from), {from}, {to});
  }

  std::string name_;
  Tensor rows_, weights_, bias_;
  std::vector<std::int64_t> loads_;
};

}  // namespace

Tensor add_weighted_bias(Tape& tape, const std::string& name, const Tensor& rows,
                         const Tensor& weights, const std::vector<std::int64_t>& loads) {
  const Tensor bias = bias_parameter(tape, name, rows, loads);
  const WeightedBias added(name + ".add_bias", rows, weights, bias, loads);
  const Tensor out = added.forward(tape);
  tape.differentiable({rows, bias, weights}, out,
                      [=](Tape& t, auto gradients) { added.backward(t, gradients[0]); });
  return out;
}

Tensor add_expert_bias(Tape& tape, const std::string& name, const Tensor& rows,
                       const std::vector<std::int64_t>& loads) {
  const Tensor bias = bias_parameter(tape, name, rows, loads);
  const std::string add = name + ".add_bias";
  const Tensor sums = tape.make(add + ".sums", rows.shape.dense(), rows.precision);
  for (const std::int64_t load : loads) {
    if (load == 0) continue;
    const Tensor part = part_of_rows(sums, load);
    tape.launch(add + ".add", pointwise_kernel(part, 1),
                {part_of_rows(rows, load), bias_of_expert(bias)}, {part});
  }
  const Tensor out = tape.make(add, rows.shape.dense(), rows.precision);
  tape.launch(add + ".cat", pointwise_kernel(out, 0, KernelKind::copy), {sums}, {out});
  tape.differentiable({rows, bias}, out, [=](Tape& t, auto gradients) {
    const Tensor of_bias = t.make(name + ".bias.grad", bias.shape, bias.precision);
    for (const std::int64_t load : loads) {
      if (load == 0) continue;
      const Tensor from = part_of_rows(gradients[0], load);
      t.launch(add + ".bias.sum", reduction_kernel(from), {from}, {bias_of_expert(of_bias)});
    }
    const Tensor of_rows = t.make(add + ".rows.grad", rows.shape.dense(), rows.precision);
    t.launch(add + ".split.backward", pointwise_kernel(of_rows, 0, KernelKind::copy),
             {gradients[0]}, {of_rows});
    t.add_gradient(bias, of_bias);
    t.add_gradient(rows, of_rows);
  });
  return out;
}

}  // namespace tessera
