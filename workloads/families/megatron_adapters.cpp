// Low-rank adapters: Hu et al., "LoRA", 2021; split over tensor-parallel ranks as Megatron-Bridge
// does it, peft/utils.py, ParallelLinearAdapter: what meets the split side of a layer is split, the
// other factor is held in full. DoRA: Liu et al., "DoRA: Weight-Decomposed Low-Rank Adaptation",
// 2024, as Megatron-Bridge's peft/dora.py and dora_layers.py run it (recalled).
#include "workloads/families/megatron_model.h"
#include "workloads/ops/linear.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// Of each output's weights with the adapter's product added, [out], outside of autograd: the
/// factor scaled, a product of the weight's size, its sum with the weight and a norm over each row.
Tensor lengths_of_rows(Tape& tape, const std::string& name, const LowRankFactors& factors,
                       const Tensor& weight) {
  const Tensor scaled = map(tape, name + ".scale", {factors.out});
  const Tensor change = product(tape, name + ".product", scaled, factors.in);
  const Tensor changed = map(tape, name + ".add", {weight, change});
  const Tensor lengths = tape.make(name, StridedShape({weight.sizes()[0]}), changed.precision);
  tape.launch(name, reduction_kernel(changed), {changed}, {lengths});
  return lengths;
}

/// a / b, of which b is a constant to backward.
Tensor ratio(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = map(tape, name, {a, b});
  tape.differentiable({a}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(a, map(t, name + ".backward", {gradients[0], b}));
  });
  return out;
}

}  // namespace

/// The layer with its adapter. DoRA stretches each output by a trained number over the length of
/// its weights now, and adds what a dropout of zero leaves to add: the number 0.
Tensor MegatronModel::adapted(Tape& tape, const std::string& lora, const LowRankFactors& factors,
                              const Tensor& weight, const Tensor& result) const {
  const Tensor sum = add(tape, lora + ".add", result, scale(tape, lora + ".scale", factors.wide));
  if (!step_.dora) return sum;
  const Tensor magnitude = tape.adapter_parameter(lora + "_magnitude", {result.shape.last()});
  const Tensor lengths = lengths_of_rows(tape, lora + ".lengths", factors, weight);
  const Tensor stretched =
      multiply(tape, lora + ".stretch", sum, ratio(tape, lora + ".ratio", magnitude, lengths));
  return add_number(tape, lora + ".correction", stretched);
}

bool MegatronModel::adapts(const std::string& name) const {
  if (step_.lora_rank == 0) return false;
  return step_.lora_targets == LoraTargets::all || name.starts_with("attention.");
}

Tensor MegatronModel::with_column_adapter(Tape& tape, const std::string& name, const Tensor& x,
                                          const Tensor& weight, const Tensor& result) const {
  const std::string lora = name + ".lora";
  const Tensor in = tape.adapter_parameter(lora + "_a.weight", {step_.lora_rank, x.shape.last()});
  const Tensor out =
      tape.adapter_parameter(lora + "_b.weight", {result.shape.last(), step_.lora_rank});
  const Tensor narrow = linear_over_last(tape, lora + "_a", x, in, {});
  const Tensor wide = column_parallel_linear(tape, lora + "_b", narrow, out, split());
  return adapted(tape, lora, {in, out, wide}, weight, result);
}

Tensor MegatronModel::with_row_adapter(Tape& tape, const std::string& name, const Tensor& x,
                                       const Tensor& weight, const Tensor& result) const {
  const std::string lora = name + ".lora";
  const Tensor in = tape.adapter_parameter(lora + "_a.weight", {step_.lora_rank, x.shape.last()});
  const Tensor out =
      tape.adapter_parameter(lora + "_b.weight", {result.shape.last(), step_.lora_rank});
  const Tensor narrow = row_parallel_linear(tape, lora + "_a", x, in, split());
  const Tensor wide = linear_over_last(tape, lora + "_b", narrow, out, {});
  return adapted(tape, lora, {in, out, wide}, weight, result);
}

/// Of those that are held in full, with the gradient of a part of the sequence.
std::int64_t MegatronModel::partial_adapters(LayerKind kind) const {
  const std::int64_t one = step_.lora_rank * model_.hidden;
  const std::int64_t attention =
      latent() ? one + step_.lora_rank *
                           (model_.kv_rank + (model_.q_rank > 0 ? model_.q_rank : model_.hidden))
               : 2 * one;
  if (step_.lora_targets == LoraTargets::attention) return attention;
  const bool dense = !kind.experts || model_.shared_ffn > 0;
  return attention + (dense ? 2 * one : 0);
}

}  // namespace tessera
