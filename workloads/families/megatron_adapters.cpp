// Low-rank adapters: Hu et al., "LoRA", 2021; split over tensor-parallel ranks as Megatron-Bridge
// does it, peft/utils.py, ParallelLinearAdapter: what meets the split side of a layer is split, the
// other factor is held in full.
#include "workloads/families/megatron_model.h"
#include "workloads/ops/linear.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"

namespace tessera {

bool MegatronModel::adapts(const std::string& name) const {
  if (step_.lora_rank == 0) return false;
  return step_.lora_targets == LoraTargets::all || name.starts_with("attention.");
}

Tensor MegatronModel::with_column_adapter(Tape& tape, const std::string& name, const Tensor& x,
                                          const Tensor& result) const {
  const std::string lora = name + ".lora";
  const Tensor in = tape.adapter_parameter(lora + "_a.weight", {step_.lora_rank, x.shape.last()});
  const Tensor out =
      tape.adapter_parameter(lora + "_b.weight", {result.shape.last(), step_.lora_rank});
  const Tensor narrow = linear_over_last(tape, lora + "_a", x, in, {});
  const Tensor wide = column_parallel_linear(tape, lora + "_b", narrow, out, split());
  return add(tape, lora + ".add", result, scale(tape, lora + ".scale", wide));
}

Tensor MegatronModel::with_row_adapter(Tape& tape, const std::string& name, const Tensor& x,
                                       const Tensor& result) const {
  const std::string lora = name + ".lora";
  const Tensor in = tape.adapter_parameter(lora + "_a.weight", {step_.lora_rank, x.shape.last()});
  const Tensor out =
      tape.adapter_parameter(lora + "_b.weight", {result.shape.last(), step_.lora_rank});
  const Tensor narrow = row_parallel_linear(tape, lora + "_a", x, in, split());
  const Tensor wide = linear_over_last(tape, lora + "_b", narrow, out, {});
  return add(tape, lora + ".add", result, scale(tape, lora + ".scale", wide));
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
