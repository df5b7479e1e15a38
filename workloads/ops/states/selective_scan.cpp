#include "workloads/ops/states/selective_scan.h"

#include <span>
#include <vector>

#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

constexpr std::int64_t kPositions = 2048;  // of a chunk, whose end state is kept
constexpr double kPerState = 9, kBeside = 2, kBackward = 3;

/// -exp(A), [channels, state], in fp32.
Tensor decay_of(Tape& tape, const std::string& name, std::int64_t channels, std::int64_t state) {
  const Tensor weight = tape.parameter(name + ".A_log", {channels, state});
  const Tensor exact = cast(tape, name + ".A.float", weight, Precision::fp32);
  // exp saves what it gives, as tanh does.
  return negate(tape, name + ".A.neg", tanh(tape, name + ".A.exp", exact));
}

}  // namespace

Tensor selective_scan(Tape& tape, const std::string& name, const ScanOperands& operands) {
  const Tensor& x = operands.x;
  const std::int64_t batch = x.sizes()[0], channels = x.sizes()[1], positions = x.sizes()[2];
  const std::int64_t state = operands.written.sizes()[1];
  const std::vector<Tensor> inputs{x,
                                   operands.steps,
                                   operands.written,
                                   operands.read,
                                   operands.gate,
                                   decay_of(tape, name, channels, state),
                                   tape.parameter(name + ".D", {channels}),
                                   tape.parameter(name + ".dt_bias", {channels})};
  const std::int64_t chunks = (positions + kPositions - 1) / kPositions;
  const Tensor ends = tape.make(
      name + ".states", StridedShape({batch, channels, chunks, 2 * state}), Precision::fp32);
  const Tensor plain = tape.make(name + ".ungated", x.shape.dense(), x.precision);
  const Tensor out = tape.make(name, x.shape.dense(), x.precision);
  const Kernel kernel = pointwise_kernel(out, kPerState * static_cast<double>(state) + kBeside);
  tape.launch(name, kernel, inputs, std::vector{ends, plain, out});
  tape.differentiable(inputs, std::span(&out, 1), [=](Tape& t, auto gradients) {
    std::vector<Tensor> read = inputs, made;
    for (const Tensor& saved : {ends, plain, gradients[0]}) read.push_back(saved);
    for (const Tensor& input : inputs) {
      const bool summed = input.sizes() == inputs[2].sizes() && input.sizes() != x.sizes();
      made.push_back(t.make(t.name_of(input) + ".grad", input.shape.dense(),
                            summed ? Precision::fp32 : input.precision));
    }
    Kernel backward = kernel;
    backward.flops = Flops(kBackward * kernel.flops.value());
    t.launch(name + ".backward", backward, read, made);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Tensor gradient = made[i];
      if (gradient.precision != inputs[i].precision) {
        gradient = t.make(t.name_of(inputs[i]) + ".grad.narrow", inputs[i].shape.dense(),
                          inputs[i].precision);
        t.launch(name + ".sums.to", pointwise_kernel(gradient, 0), {made[i]}, {gradient});
      }
      t.add_gradient(inputs[i], gradient);
    }
  });
  return out;
}

}  // namespace tessera
