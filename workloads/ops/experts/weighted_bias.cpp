#include "workloads/ops/experts/weighted_bias.h"

#include <utility>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

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
      launch(tape, ".weigh", {of_expert(bias_), weights_of(load)}, part(weighed, load));
      launch(tape, ".add", {part(rows_, load), part(weighed, load)}, part(sums, load));
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
      const Tensor from = part(exact, load), to = part(product, load);
      launch(tape, ".rows.to", {from}, part(narrow, load));
      launch(tape, ".times_weights", {from, weights_of(load)}, to);
      sum(tape, ".bias.sum", to, of_expert(of_bias));
      launch(tape, ".times_bias", {from, of_expert(bias_)}, to);
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
  static Tensor part(const Tensor& of, std::int64_t rows) {
    Tensor result = of;
    result.shape = StridedShape({rows, of.shape.last()});
    return result;
  }
  static Tensor of_expert(const Tensor& bias) {
    Tensor result = bias;
    result.shape = StridedShape({bias.shape.last()});
    return result;
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
  const Tensor bias = tape.expert_parameter(
      name + ".bias", {static_cast<std::int64_t>(loads.size()), rows.shape.last()});
  const WeightedBias added(name + ".add_bias", rows, weights, bias, loads);
  const Tensor out = added.forward(tape);
  tape.differentiable({rows, bias, weights}, out,
                      [=](Tape& t, auto gradients) { added.backward(t, gradients[0]); });
  return out;
}

}  // namespace tessera
