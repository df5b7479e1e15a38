#pragma once

#include <functional>
#include <string>

#include "workloads/graph/tape.h"
#include "workloads/model_graph.h"

namespace tessera {

/// What the logits of an image model are about.
enum class LogitsOf : std::uint8_t {
  images,  ///< [b, classes]
  pixels,  ///< [b, classes, height, width]
  noise,   ///< no classes: what was added to each number, whose squared error is the loss
};

/// Builds a model from blocks that run one after the other, the first of them on the images
/// [b, channels, image_size, image_size].
class ImageSequence {
 public:
  /// Gives the output for the input `x`. Runs again after it was added where a checkpoint
  /// recomputes it: it has to hold what it needs by value.
  using Module = std::function<Tensor(Tape&, const Tensor& x)>;
  /// A module that also reads what an earlier block gave to all (Tape::shared_output).
  using ConditionedModule = std::function<Tensor(Tape&, const Tensor& x, const Tensor& condition)>;
  struct Condition {
    std::string name;
    StridedShape shape;
  };

  /// Both must outlive the sequence.
  ImageSequence(const ModelSpec& model, const StepOptions& step, std::int64_t channels = 3);

  /// A block that is never recomputed: a stem, a transition.
  void add(const std::string& name, const Module& module);
  /// `count` equal layers, which keep the sizes of their input if there is more than one. They are
  /// what `recompute: full` recomputes, except on the images, which need no gradient.
  void add_layers(const std::string& name, const Module& module, int count = 1);
  void add_conditioned_layers(const std::string& name, const Condition& condition,
                              const ConditionedModule& module, int count);
  /// Adds the block that ends in logits, with the loss of a training step.
  ModelGraph finish(const Module& head, LogitsOf logits = LogitsOf::images) &&;

 private:
  Tensor begin(Tape& tape) const;
  /// Appends `count` layers of one block; `run` says what it does with its input, again or not.
  void append_layers(const std::string& name, int count,
                     const std::function<Tensor(Tape&, const Tensor& x, bool again)>& run);
  void append(Block block, int count, bool numbered);

  const ModelSpec& model_;
  const StepOptions& step_;
  Sizes sizes_;  ///< of the next block's input
  int layers_ = 0;
  ModelGraph graph_;
};

}  // namespace tessera
