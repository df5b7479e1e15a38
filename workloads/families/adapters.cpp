#include "workloads/families/adapters.h"

#include <algorithm>
#include <map>

#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/views.h"

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

/// torch.eye: zeros, then the diagonal.
Tensor unit_matrix(Tape& tape, const std::string& name, std::int64_t size) {
  const Tensor unit = tape.make(name, StridedShape({size, size}));
  tape.launch(name, pointwise_kernel(unit, 0, KernelKind::fill), {}, {unit});
  Tensor diagonal = unit;
  diagonal.shape = StridedShape({size}, {size + 1});
  tape.launch(name + ".diagonal", pointwise_kernel(diagonal, 0, KernelKind::fill), {}, {diagonal});
  return unit;
}

/// a - b, of which b is a constant to backward.
Tensor less(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = map(tape, name, {a, b});
  tape.differentiable({a}, out, [=](Tape& t, auto gradients) { t.add_gradient(a, gradients[0]); });
  return out;
}

/// Of the rows of the weight with the adapter's product added, [out], outside of autograd. The
/// product is what the adapter makes of a unit matrix, so that FSDP gathers the factors.
Tensor lengths_of_rows(Tape& tape, const std::string& lora, const Tensor& in, const Tensor& out,
                       const Tensor& weight) {
  const Tensor unit = unit_matrix(tape, lora + ".eye", in.shape.last());
  const Tensor narrow = product(tape, lora + ".eye_a", unit, transposed(tape, in));
  const Tensor change = product(tape, lora + ".eye_b", narrow, transposed(tape, out));
  const Tensor scaled = map(tape, lora + ".change.scale", {transposed(tape, change)});
  const Tensor changed = map(tape, lora + ".change.add", {weight, scaled});
  const std::string name = lora + ".lengths";
  const Tensor lengths = tape.make(name, StridedShape({weight.sizes()[0]}), changed.precision);
  tape.launch(name, reduction_kernel(changed), {changed}, {lengths});
  return lengths;
}

}  // namespace

Tensor ratio(Tape& tape, const std::string& name, const Tensor& a, const Tensor& b) {
  const Tensor out = map(tape, name, {a, b});
  tape.differentiable({a}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(a, map(t, name + ".backward", {gradients[0], b}));
  });
  return out;
}

bool Adapters::stand_beside(const std::string& name) const {
  if (rank_ == 0) return false;
  if (!modules_.empty()) return std::ranges::find(modules_, module_of(name)) != modules_.end();
  return targets_ == LoraTargets::all || name.starts_with("attention.");
}

Adapters::Factors Adapters::factors(Tape& tape, const std::string& lora, std::int64_t in,
                                    std::int64_t out) const {
  return {tape.adapter_parameter(lora + "_a.weight", {rank_, in}),
          tape.adapter_parameter(lora + "_b.weight", {out, rank_})};
}

/// `x` in the format that factors are held in, some of it dropped; autocast casts it back for the
/// first factor's product, which keeps the copy.
Tensor Adapters::input(Tape& tape, const std::string& lora, const Tensor& x) const {
  const Tensor held = cast(tape, lora + ".float", x, held_);
  const Tensor dropped = dropout(tape, lora + ".dropout", held, dropout_);
  return cast(tape, lora + ".input", dropped, x.precision);
}

Adapters::Base Adapters::base(Tape& tape, const std::string& name, const Tensor& x,
                              std::int64_t out, Bias bias) const {
  Base base{.weight = tape.parameter(name + ".weight", {out, x.shape.last()}),
            .bias = std::nullopt,
            .result = {}};
  if (bias != Bias::none) base.bias = tape.parameter(name + ".bias", {out});
  base.result = linear_over_last(tape, name, x, base.weight, {.bias = base.bias});
  return base;
}

/// DoRA: each output of layer and adapter times a trained number over the length of its weights
/// now; the layer's own output counts in full. Where inputs are dropped the layer runs once more,
/// on what is left.
Tensor Adapters::stretched(Tape& tape, const std::string& lora, const Tensor& x,
                           const Base& base) const {
  const std::int64_t outputs = base.result.shape.last();
  const auto [in, out] = factors(tape, lora, x.shape.last(), outputs);
  const Tensor read = input(tape, lora, x);
  const Tensor lengths = lengths_of_rows(tape, lora, in, out, base.weight);
  const Tensor magnitude = tape.adapter_parameter(lora + "_magnitude_vector", {outputs});
  const Tensor factor = ratio(tape, lora + ".ratio", magnitude, lengths);
  const Tensor narrow = linear_over_last(tape, lora + "_a", read, in, {});
  const Tensor wide = linear_over_last(tape, lora + "_b", narrow, out, {});
  Tensor plain = base.result;
  if (dropout_ > 0)
    plain = linear_over_last(tape, lora + ".base", read, base.weight, {});
  else if (base.bias)
    plain = less(tape, lora + ".unbiased", base.result, *base.bias);
  const Tensor own =
      multiply(tape, lora + ".own", add_number(tape, lora + ".factor", factor), plain);
  const Tensor turned = multiply(tape, lora + ".stretch", factor, wide);
  const Tensor both = add(tape, lora + ".both", own, scale(tape, lora + ".scale", turned));
  return add(tape, lora + ".add", base.result, both);
}

Tensor Adapters::layer(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out,
                       Bias bias) const {
  const std::string lora = name + ".lora";
  if (!stand_beside(name)) return linear(tape, name, x, out, bias);
  if (dora_) return stretched(tape, lora, x, base(tape, name, x, out, bias));
  const Tensor result = linear(tape, name, x, out, bias);
  const Tensor read = input(tape, lora, x);
  const Factors factors = this->factors(tape, lora, x.shape.last(), out);
  const Tensor narrow = linear_over_last(tape, lora + "_a", read, factors.in, {});
  const Tensor wide = linear_over_last(tape, lora + "_b", narrow, factors.out, {});
  return add(tape, lora + ".add", result, scale(tape, lora + ".scale", wide));
}

}  // namespace tessera
