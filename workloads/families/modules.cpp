#include "workloads/families/modules.h"

#include <algorithm>

#include "workloads/ops/attention/context_attention.h"
#include "workloads/ops/attention/ring_parts.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/rowwise.h"
#include "workloads/ops/transformer.h"
#include "workloads/ops/views.h"
#include "workloads/packed_documents.h"

namespace tessera {
namespace {

/// (-second half, first half): a negation and a concatenation.
Tensor rotate_half(Tape& tape, const std::string& name, const Tensor& x) {
  const std::int64_t half = x.shape.last() / 2;
  const Tensor first = slice_last(tape, name + ".first_half", x, half);
  const Tensor second = slice_last(tape, name + ".second_half", x, half);
  return concatenate_last(tape, name + ".cat", negate(tape, name + ".neg", second), first);
}

/// Implementation and mask of the profile's fused attention, without sizes.
AttentionCall attention_call(const FrameworkProfile& profile, bool causal) {
  AttentionCall call;
  call.causal = causal;
  if (profile.attention == AttentionKernels::flash3) {
    call.implementation = AttentionImplementation::flash3;
  } else if (profile.attention == AttentionKernels::cudnn) {
    call.implementation = AttentionImplementation::cudnn;
  } else if (profile.attention == AttentionKernels::flash1) {
    call.implementation = AttentionImplementation::flash1;
  }
  return call;
}

/// Of the step's packed documents and the pieces of `chunk` tokens that a layer cuts them into; 0:
/// one document.
double shorter_document(const StepOptions& step, std::int64_t chunk) {
  const auto piece = static_cast<double>(chunk < step.sequence_length ? chunk : 0);
  const double packed = equal_document(step);
  if (piece == 0 || packed == 0) return std::max(piece, packed);
  return std::min(piece, packed);
}

}  // namespace

Tensor core_attention(Tape& tape, const StepOptions& step, const AttentionInput& input,
                      const Tape::Recomputable& unfused) {
  Tape::Recomputable core = unfused;
  if (uses_fused_attention(step.framework)) {
    AttentionCall call = attention_call(step.framework, input.causal);
    call.window = input.window;
    call.softcap = input.softcap;
    if (input.causal) call.mean_document = shorter_document(step, input.document);
    const int ranks = step.layout.context;
    const ContextAttention way = step.context_attention;
    const bool by_parts = step.framework.splits_sequences;
    core = [=](Tape& t) {
      if (ranks > 1 && by_parts)
        return attention_by_parts(
            t, "attention.ring", input.q, input.k, input.v, call, ranks,
            way == ContextAttention::ring ? PartRotation::all_to_all : PartRotation::all_gather);
      if (ranks > 1 && way == ContextAttention::ring)
        return ring_attention(t, "attention.ring", input.q, input.k, input.v, call, ranks);
      if (ranks > 1 && way == ContextAttention::all_gather)
        return gathered_attention(t, "attention.flash", input.q, input.k, input.v, call, ranks);
      return fused_attention(t, "attention.flash", input.q, input.k, input.v, call, input.sinks);
    };
  }
  if (!recomputes_attention_alone(step)) return core(tape);
  return tape.checkpoint({input.q, input.k, input.v}, core);
}

void recomputable_layer(Tape& tape, const StepOptions& step, const Tensor& x,
                        const Tape::Recomputable& forward) {
  const bool again = step.recompute != Recompute::none && !recomputes_attention_alone(step) &&
                     step.recompute_modules.empty();
  const Kept kept =
      step.recompute == Recompute::full ? Kept::nothing : Kept::attention_and_alternate_products;
  tape.output(again ? tape.checkpoint({x}, forward, kept) : forward(tape));
}

Tensor root_mean_square_norm(Tape& tape, const std::string& name, const Tensor& x,
                             const FrameworkProfile& profile) {
  if (profile.fused_norm) return fused_rms_norm(tape, name, x);
  return rms_norm(tape, name, x);
}

Tensor root_mean_square_norm(Tape& tape, const std::string& name, const Tensor& x,
                             const Tensor& weight, const FrameworkProfile& profile) {
  return profile.fused_norm ? fused_rms_norm(tape, name, x, weight)
                            : rms_norm(tape, name, x, weight);
}

Tensor complex_rope(Tape& tape, const std::string& name, const Tensor& x, std::int64_t positions) {
  const Tensor table = tape.input("rotary.table", {positions, x.shape.last()}, Precision::fp32);
  const auto turned = [=](Tape& t, const std::string& kernel_name, const Tensor& from) {
    const Tensor out = t.make(kernel_name, from.shape.dense(), Precision::fp32);
    constexpr double kFlops = 3;  // six for two numbers
    t.launch(kernel_name, pointwise_kernel(out, kFlops, KernelKind::copy), {from, table}, {out});
    return out;
  };
  const Tensor wide = cast(tape, name + ".float", x, Precision::fp32);
  const Tensor out = turned(tape, name, wide);
  tape.differentiable({wide}, out, [=](Tape& t, auto gradients) {
    t.add_gradient(wide, turned(t, name + ".backward", gradients[0]));
  });
  return cast(tape, name + ".type_as", out, x.precision);
}

Tensor composed_rope(Tape& tape, const std::string& name, const Tensor& x, const Tensor& cosine,
                     const Tensor& sine) {
  const Tensor straight = multiply(tape, name + ".cos", x, cosine);
  const Tensor turned = multiply(tape, name + ".sin", rotate_half(tape, name, x), sine);
  return add(tape, name + ".add", straight, turned);
}

Tensor repeat_heads(Tape& tape, const std::string& name, const Tensor& x, std::size_t dim,
                    std::int64_t repeats) {
  if (repeats == 1) return x;
  Sizes grouped = x.sizes();
  grouped.insert(grouped.begin() + static_cast<std::ptrdiff_t>(dim) + 1, 1);
  Sizes expanded = grouped;
  expanded[dim + 1] = repeats;
  Sizes merged = x.sizes();
  merged[dim] *= repeats;
  return reshape(tape, expand(tape, name, view(tape, x, grouped), expanded), merged);
}

Tensor gated_silu(Tape& tape, const std::string& name, const Tensor& x,
                  const FrameworkProfile& profile, Activation activation) {
  if (profile.fused_gate) return fused_swiglu(tape, name, x);
  const auto halves = chunk_last(tape, name, x, 2);
  const bool gelus = activation == Activation::geglu;
  const Tensor active =
      gelus ? gelu(tape, name + ".gelu", halves[0]) : silu(tape, name + ".silu", halves[0]);
  return multiply(tape, name + ".gated", active, halves[1]);
}

}  // namespace tessera
