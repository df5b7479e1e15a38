// Layers with a state that are not Megatron's, on whole sequences of one rank: the code beside Kimi
// Linear's weights, modeling_kimi.py, KimiDeltaAttention; Mamba-1 as transformers
// models/jamba/modeling_jamba.py, JambaMambaMixer.cuda_kernels_forward has it (both recalled).
#include "workloads/families/megatron_model.h"
#include "workloads/layer_patterns.h"
#include "workloads/ops/matmul.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/kimi_delta.h"
#include "workloads/ops/states/selective_scan.h"
#include "workloads/ops/views.h"

namespace tessera {
namespace {

/// A linear layer without a bias that no rank shares.
Tensor whole_linear(Tape& tape, const std::string& name, const Tensor& x, std::int64_t out) {
  const Tensor weight = tape.parameter(name + ".weight", {out, x.shape.last()});
  return linear_over_last(tape, name, x, weight, {});
}

}  // namespace

/// A product and a convolution
/// for queries, keys and values each; decay and gate of every channel by way of a rank as wide as a
/// head.
Tensor MegatronModel::kimi_delta(Tape& tape, const Tensor& x) const {
  const DeltaShape shape{.sequences = b_,
                         .positions = s_,
                         .heads = model_.delta_heads,
                         .key_heads = model_.delta_key_heads,
                         .key_dim = model_.delta_key_dim,
                         .value_dim = model_.delta_value_dim};
  const Tensor rows = contiguous(tape, "delta.transpose", transpose(tape, x, 0, 1));  // [b, s, h]
  const auto project = [&](const std::string& name, const Tensor& from, std::int64_t out) {
    return whole_linear(tape, name, from, out);
  };
  const Sizes by_head{b_, s_, shape.heads, shape.key_dim};
  const auto convolved = [&](const std::string& name) {
    const Tensor wide = project(name, rows, shape.values());
    return view(tape, causal_convolution(tape, name + ".conv1d", wide, shape.values()), by_head);
  };
  const auto by_rank = [&](const std::string& name) {
    return project(name + "_up", project(name + "_down", rows, shape.key_dim), shape.values());
  };
  const Tensor step =
      cast(tape, "delta.step.float", project("delta.step", rows, shape.heads), Precision::fp32);
  const DeltaOperands operands{unit_rows(tape, "delta.q_norm", convolved("delta.q")),
                               unit_rows(tape, "delta.k_norm", convolved("delta.k")),
                               convolved("delta.v"),
                               channel_decay(tape, "delta.decay", by_rank("delta.f"), shape),
                               sigmoid(tape, "delta.step.sigmoid", step)};
  const Tensor given = kimi_delta_rule(tape, "delta.rule", operands, shape);
  const Tensor gate = view(tape, by_rank("delta.g"), by_head);
  const Tensor gated = gated_norm(tape, "delta.norm", given, gate);
  const Tensor out =
      project("delta.out", view(tape, gated, {b_, s_, shape.values()}), model_.hidden);
  return contiguous(tape, "delta.back", transpose(tape, out, 0, 1));
}

/// Channels whose step sizes and what their states are written and read by come from what the
/// convolution gives, behind a norm each. The scan reads positions of a channel side by side.
Tensor MegatronModel::scan_mixer(Tape& tape, const Tensor& x) const {
  const std::int64_t channels = model_.mamba_heads, state = model_.mamba_state;
  const std::int64_t rank = scan_rank_of(model_);
  const auto by_channel = [&](const std::string& name, const Tensor& part) {
    return contiguous(tape, name, transpose(tape, part, 1, 2));
  };
  const Tensor rows = contiguous(tape, "mamba.transpose", transpose(tape, x, 0, 1));  // [b, s, h]
  const auto halves =
      chunk_last(tape, "mamba.halves", whole_linear(tape, "mamba.in", rows, 2 * channels), 2);
  const Tensor mixed = causal_convolution(tape, "mamba.conv1d", halves[0], channels, true);
  const auto parts =
      split_last(tape, "mamba.parts", whole_linear(tape, "mamba.x", mixed, rank + 2 * state),
                 {rank, state, state});
  const auto normed = [&](const std::string& name, const Tensor& part) {
    return norm(tape, name + "_norm", contiguous(tape, name + "_copy", part));
  };
  const Tensor steps = whole_linear(tape, "mamba.steps", normed("mamba.steps", parts[0]), channels);
  const Tensor scanned = selective_scan(
      tape, "mamba.scan",
      {by_channel("mamba.x_by_channel", mixed), by_channel("mamba.steps_by_channel", steps),
       by_channel("mamba.b_by_channel", normed("mamba.b", parts[1])),
       by_channel("mamba.c_by_channel", normed("mamba.c", parts[2])),
       by_channel("mamba.gate_by_channel", halves[1])});
  const Tensor out =
      whole_linear(tape, "mamba.out", by_channel("mamba.by_position", scanned), model_.hidden);
  return contiguous(tape, "mamba.transpose_back", transpose(tape, out, 0, 1));
}

}  // namespace tessera
