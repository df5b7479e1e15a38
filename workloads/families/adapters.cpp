#include "workloads/families/adapters.h"

#include <algorithm>
#include <map>

#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"

namespace tessera {
namespace {

/// The name that transformers' Llama has for a layer; the layer's own where it is none of those.
std::string module_of(const std::string& layer) {
  static const std::map<std::string, std::string> kModules{
      {"attention.q", "q_proj"},     {"attention.k", "k_proj"}, {"attention.v", "v_proj"},
      {"mlp.gate", "gate_proj"},     {"mlp.up", "up_proj"},     {"mlp.down", "down_proj"},
      {"attention.output", "o_proj"}};
  const auto found = kModules.find(layer);
  return found == kModules.end() ? layer : found->second;
}

}  // namespace

bool Adapters::stand_beside(const std::string& name) const {
  if (rank_ == 0) return false;
  if (!modules_.empty()) return std::ranges::find(modules_, module_of(name)) != modules_.end();
  return targets_ == LoraTargets::all || name.starts_with("attention.");
}

Tensor Adapters::added(Tape& tape, const std::string& name, const Tensor& x,
                       const Tensor& y) const {
  if (!stand_beside(name)) return y;
  const std::string lora = name + ".lora";
  const Tensor in = tape.adapter_parameter(lora + "_a.weight", {rank_, x.shape.last()});
  const Tensor out = tape.adapter_parameter(lora + "_b.weight", {y.shape.last(), rank_});
  const Tensor narrow = linear_over_last(tape, lora + "_a", x, in, {});
  const Tensor wide = linear_over_last(tape, lora + "_b", narrow, out, {});
  return add(tape, lora + ".add", y, scale(tape, lora + ".scale", wide));
}

}  // namespace tessera
