#include "workloads/vision/image_sequence.h"

#include <utility>

#include "workloads/families/recording.h"
#include "workloads/ops/loss/cross_entropy.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// finish_with_logits for a label per pixel.
void finish_with_pixels(Tape& tape, const StepOptions& step, const Tensor& logits) {
  tape.keep(logits);
  if (step.mode == StepMode::inference) return;
  if (step.mode == StepMode::forward_backward) return tape.differentiate(logits);
  tape.set_phase(Phase::loss);
  const Sizes& sizes = logits.sizes();
  const Tensor labels = tape.input("labels", {sizes[0], sizes[2], sizes[3]}, Precision::int64);
  const Tensor floats =
      step.framework.fp32_logits ? cast(tape, "loss.float", logits, Precision::fp32) : logits;
  tape.differentiate(pixel_cross_entropy(tape, "loss", floats, labels));
}

/// The mean of squared differences, in fp32 (F.mse_loss).
void finish_with_noise(Tape& tape, const StepOptions& step, const Tensor& found) {
  tape.keep(found);
  if (step.mode == StepMode::inference) return;
  if (step.mode == StepMode::forward_backward) return tape.differentiate(found);
  tape.set_phase(Phase::loss);
  const Tensor floats = cast(tape, "loss.float", found, Precision::fp32);
  const Tensor noise = tape.buffer("noise", found.sizes(), Precision::fp32);
  const Tensor flat = view(tape, multiply(tape, "loss.square", floats, noise), {found.elements()});
  tape.differentiate(mean_last(tape, "loss.mean", flat));
}

}  // namespace

ImageSequence::ImageSequence(const ModelSpec& model, const StepOptions& step, std::int64_t channels)
    : model_(model),
      step_(step),
      sizes_({step.micro_batch, channels, model.image_size, model.image_size}) {}

Tensor ImageSequence::begin(Tape& tape) const {
  // Unlike token ids they are worth counting: the loader's tensor lives as long as the step.
  if (graph_.order.empty()) return tape.buffer("images", sizes_, tape.precision());
  return tape.block_input("x", sizes_);
}

void ImageSequence::append(Block block, int count, bool numbered) {
  const int index = static_cast<int>(graph_.blocks.size());
  graph_.blocks.push_back(std::move(block));
  for (int i = 0; i < count; ++i) {
    graph_.order.push_back(index);
    graph_.layer_numbers.push_back(numbered ? layers_++ : kNoLayer);
  }
}

void ImageSequence::add(const std::string& name, const Module& module) {
  Sizes made;
  Block block = record_block(name, step_, [&](Tape& tape) {
    const Tensor out = module(tape, begin(tape));
    tape.output(out);
    made = out.sizes();
  });
  append(std::move(block), 1, false);
  sizes_ = std::move(made);
}

void ImageSequence::append_layers(
    const std::string& name, int count,
    const std::function<Tensor(Tape&, const Tensor& x, bool again)>& run) {
  Sizes made;
  Block block = record_block(name, step_, [&](Tape& tape) {
    const Tensor x = begin(tape);
    const bool again = step_.recompute == Recompute::full && tape.requires_gradient(x);
    const Tensor out = run(tape, x, again);
    tape.output(out);
    made = out.sizes();
  });
  append(std::move(block), count, true);
  sizes_ = std::move(made);
}

void ImageSequence::add_layers(const std::string& name, const Module& module, int count) {
  append_layers(name, count, [&](Tape& tape, const Tensor& x, bool again) {
    const auto forward = [module, x](Tape& t) { return module(t, x); };
    return again ? tape.checkpoint({x}, forward) : forward(tape);
  });
}

void ImageSequence::add_conditioned_layers(const std::string& name, const Condition& condition,
                                           const ConditionedModule& module, int count) {
  append_layers(name, count, [&](Tape& tape, const Tensor& x, bool again) {
    const Tensor c = tape.shared_input(condition.name, condition.shape);
    const auto forward = [module, x, c](Tape& t) { return module(t, x, c); };
    return again ? tape.checkpoint({x, c}, forward) : forward(tape);
  });
}

ModelGraph ImageSequence::finish(const Module& head, LogitsOf logits) && {
  Block block = record_block("head", step_, [&](Tape& tape) {
    const Tensor out = head(tape, begin(tape));
    if (logits == LogitsOf::images) {
      finish_with_logits(tape, step_, out);
    } else if (logits == LogitsOf::pixels) {
      finish_with_pixels(tape, step_, out);
    } else {
      finish_with_noise(tape, step_, out);
    }
  });
  append(std::move(block), 1, false);
  return std::move(graph_);
}

}  // namespace tessera
