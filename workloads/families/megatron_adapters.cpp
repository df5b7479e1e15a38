// Low-rank adapters: Hu et al., "LoRA", 2021; split over tensor-parallel ranks as Megatron-Bridge
// does it, peft/utils.py, ParallelLinearAdapter: what meets the split side of a layer is split, the
// other factor is held in full. DoRA: Liu et al., "DoRA: Weight-Decomposed Low-Rank Adaptation",
// 2024, as Megatron-Bridge's peft/dora.py and dora_layers.py run it (recalled).
#include <algorithm>

#include "workloads/families/adapters.h"
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

/// `whole` with `part` added to as many of its last dimension's numbers, in place.
Tensor add_to_part(Tape& tape, const std::string& name, const Tensor& whole, const Tensor& part) {
  Tensor slice = whole;
  slice.shape = part.shape.dense();
  tape.launch(name, pointwise_kernel(part, 1), {slice, part}, {slice});
  const Tensor out = tape.alias(whole, whole.shape);
  tape.differentiable({whole, part}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(whole, gradients[0]);
    t.add_gradient(part, t.alias(gradients[0], part.shape.dense()));
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

/// Those of the layer `name` that the step names, of `outputs` outputs together.
std::vector<AdaptedPart> MegatronModel::adapted_parts(const std::string& name,
                                                      std::int64_t outputs) const {
  std::vector<AdaptedPart> parts;
  const std::int64_t keys = kv_heads_ * model_.head_dim;
  if (name == "attention.qkv")
    parts = {{"q_proj", outputs - 2 * keys}, {"k_proj", keys}, {"v_proj", keys}};
  if (name == "attention.output") parts = {{"o_proj", outputs}};
  if (name == "mlp.up")
    parts = gated_ ? std::vector<AdaptedPart>{{"gate_proj", outputs / 2}, {"up_proj", outputs / 2}}
                   : std::vector<AdaptedPart>{{"up_proj", outputs}};
  if (name == "mlp.down") parts = {{"down_proj", outputs}};
  std::erase_if(parts, [&](const AdaptedPart& part) {
    return std::ranges::find(step_.lora_modules, part.module) == step_.lora_modules.end();
  });
  return parts;
}

/// Each part's adapter, whose result is added to its outputs of the fused layer. Source: peft
/// tuners/lora/layer.py, Linear, of which transformers' layers have one each.
Tensor MegatronModel::with_adapters_of_parts(Tape& tape, const std::string& name, const Tensor& x,
                                             const Tensor& result) const {
  Tensor sum = result;
  for (const AdaptedPart& part : adapted_parts(name, result.shape.last())) {
    const std::string lora = name + "." + part.module + ".lora";
    const Tensor in = tape.adapter_parameter(lora + "_a.weight", {step_.lora_rank, x.shape.last()});
    const Tensor out = tape.adapter_parameter(lora + "_b.weight", {part.outputs, step_.lora_rank});
    const Tensor narrow = linear_over_last(tape, lora + "_a", x, in, {});
    const Tensor wide = column_parallel_linear(tape, lora + "_b", narrow, out, split());
    sum = add_to_part(tape, lora + ".add", sum, scale(tape, lora + ".scale", wide));
  }
  return sum;
}

bool MegatronModel::adapts(const std::string& name) const {
  if (step_.lora_rank == 0) return false;
  if (!step_.lora_modules.empty()) return !adapted_parts(name, 0).empty();
  return step_.lora_targets == LoraTargets::all || name.starts_with("attention.");
}

Tensor MegatronModel::with_column_adapter(Tape& tape, const std::string& name, const Tensor& x,
                                          const Tensor& weight, const Tensor& result) const {
  if (!step_.lora_modules.empty()) return with_adapters_of_parts(tape, name, x, result);
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
  if (!step_.lora_modules.empty()) {
    const auto has = [&](const std::string& module) {  // of experts there are none
      const bool of_attention =
          module == "q_proj" || module == "k_proj" || module == "v_proj" || module == "o_proj";
      return of_attention || !kind.experts;
    };
    return one * std::ranges::count_if(step_.lora_modules, has);
  }
  const std::int64_t attention =
      latent() ? one + step_.lora_rank *
                           (model_.kv_rank + (model_.q_rank > 0 ? model_.q_rank : model_.hidden))
               : 2 * one;
  if (step_.lora_targets == LoraTargets::attention) return attention;
  const bool dense = !kind.experts || model_.shared_ffn > 0;
  return attention + (dense ? 2 * one : 0);
}

}  // namespace tessera
