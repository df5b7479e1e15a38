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

/// Of the operands, x first; those that all channels share are summed in fp32.
std::vector<Tensor> gradients_of(Tape& tape, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> made;
  for (const Tensor& input : inputs) {
    const bool summed = input.sizes() == inputs[2].sizes() && input.sizes() != inputs[0].sizes();
    made.push_back(tape.make(tape.name_of(input) + ".grad", input.shape.dense(),
                             summed ? Precision::fp32 : input.precision));
  }
  return made;
}

/// A sum in fp32 is cast to what its operand has.
void add_narrowed(Tape& tape, const std::string& name, const Tensor& input, Tensor gradient) {
  if (gradient.precision != input.precision) {
    const Tensor sum = gradient;
    gradient =
        tape.make(tape.name_of(input) + ".grad.narrow", input.shape.dense(), input.precision);
    tape.launch(name + ".sums.to", pointwise_kernel(gradient, 0), {sum}, {gradient});
  }
  tape.add_gradient(input, gradient);
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
    std::vector<Tensor> read = inputs;
    for (const Tensor& saved : {ends, plain, gradients[0]}) read.push_back(saved);
    Kernel backward = kernel;
    backward.flops = Flops(kBackward * kernel.flops.value());
    const std::vector<Tensor> made = gradients_of(t, inputs);
    t.launch(name + ".backward", backward, read, made);
    for (std::size_t i = 0; i < inputs.size(); ++i) add_narrowed(t, name, inputs[i], made[i]);
  });
  return out;
}

}  // namespace tessera
