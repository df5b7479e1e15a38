// Layers of one kind each, as the letters of a pattern say: Megatron-Core ssm/mamba_block.py and
// mamba_mixer.py; gated_delta_net.py (recalled). Attention beside Mamba-2: transformers
// models/falcon_h1/modeling_falcon_h1.py, FalconH1DecoderLayer (recalled).
#include "workloads/families/megatron_model.h"
#include "workloads/families/modules.h"
#include "workloads/layer_patterns.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/states/delta_net.h"
#include "workloads/ops/states/mamba.h"
#include "workloads/ops/states/short_convolution.h"
#include "workloads/ops/transformer.h"
#include "workloads/ops/views.h"

namespace tessera {

/// Tensor-parallel ranks hold some of the heads and of the groups.
Tensor MegatronModel::mamba(Tape& tape, const Tensor& x, bool normed) const {
  const MambaShape shape{.sequences = b_,
                         .positions = s_,
                         .heads = model_.mamba_heads / tensor_,
                         .head_dim = model_.mamba_head_dim,
                         .state = model_.mamba_state,
                         .groups = model_.mamba_groups / tensor_,
                         .normed = normed};
  const Tensor wide = column(tape, "mamba.in", x, shape.projected());
  const Tensor by_sequence =
      contiguous(tape, "mamba.transpose", transpose(tape, wide, 0, 1));  // [b, s, ..]
  const Tensor rows = view(tape, by_sequence, {b_ * s_, shape.projected()});
  const Tensor mixed = view(tape, mamba_scan(tape, "mamba", rows, shape), {b_, s_, shape.inner()});
  const Tensor by_position = contiguous(tape, "mamba.transpose_back", transpose(tape, mixed, 0, 1));
  return row(tape, "mamba.out", by_position);
}

/// Tensor-parallel ranks hold some of the heads of keys and those of values that go with them.
Tensor MegatronModel::delta_net(Tape& tape, const Tensor& x) const {
  const DeltaShape shape{.sequences = b_,
                         .positions = s_,
                         .heads = model_.delta_heads / tensor_,
                         .key_heads = model_.delta_key_heads / tensor_,
                         .key_dim = model_.delta_key_dim,
                         .value_dim = model_.delta_value_dim};
  const Tensor wide = transpose(tape, column(tape, "delta.in", x, shape.projected()), 0, 1);
  const auto parts = split_last(tape, "delta.parts", wide,
                                {shape.convolved(), shape.values(), shape.heads, shape.heads});
  const Tensor channels = contiguous(tape, "delta.channels", transpose(tape, parts[0], 1, 2));
  const Tensor mixed =
      transpose(tape, causal_convolution(tape, "delta.conv1d", channels, shape.convolved()), 1, 2);
  const auto qkv =
      split_last(tape, "delta.qkv", mixed, {shape.keys(), shape.keys(), shape.values()});
  const auto by_head = [&](const std::string& name, const Tensor& part, std::int64_t heads) {
    return view(tape, contiguous(tape, name, part), {b_, s_, heads, part.shape.last() / heads});
  };
  const auto keys = [&](const std::string& name, const Tensor& part) {
    const Tensor own =
        unit_rows(tape, name + "_norm", by_head(name + "_copy", part, shape.key_heads));
    return repeat_heads(tape, name + "_repeat", own, 2, shape.heads / shape.key_heads);
  };
  const DeltaOperands operands{
      keys("delta.q", qkv[0]), keys("delta.k", qkv[1]),
      by_head("delta.v_copy", qkv[2], shape.heads),
      log_decay(tape, "delta.decay", contiguous(tape, "delta.alpha_copy", parts[3])),
      sigmoid(tape, "delta.step", contiguous(tape, "delta.beta_copy", parts[2]))};
  const Tensor given = gated_delta_rule(tape, "delta.rule", operands, shape);
  const Tensor gate = by_head("delta.gate_copy", parts[1], shape.heads);
  const Tensor gated = fused_gate(tape, "delta.gate", norm(tape, "delta.norm", given), gate);
  const Tensor rows = view(tape, gated, {b_, s_, shape.values()});
  return row(tape, "delta.out", contiguous(tape, "delta.back", transpose(tape, rows, 0, 1)));
}

/// Tensor-parallel ranks hold some of the channels.
Tensor MegatronModel::short_convolution(Tape& tape, const Tensor& x) const {
  const Tensor wide = column(tape, "conv.in", x, 3 * model_.hidden / tensor_);
  return row(tape, "conv.out", gated_short_convolution(tape, "conv", wide));
}

/// What a layer of one branch makes of its norm.
Tensor MegatronModel::lettered_branch(Tape& tape, const Tensor& input, LayerKind kind) const {
  switch (kind.letter) {
    case layer_letter::kMamba:
      return mamba(tape, input, true);
    case layer_letter::kDelta:
      return delta_net(tape, input);
    case layer_letter::kKimiDelta:
      return kimi_delta(tape, input);
    case layer_letter::kScan:
      return scan_mixer(tape, input);
    case layer_letter::kShortConvolution:
      return short_convolution(tape, input);
    case layer_letter::kAttention:
      return attention(tape, input, kind);
    case layer_letter::kSideBySide: {
      const Tensor mixed = mamba(tape, input, false);
      return add(tape, "mixers.add", mixed, attention(tape, input, kind));
    }
    default:
      return feed_forward(tape, input, kind);
  }
}

Tensor MegatronModel::lettered_layer(Tape& tape, const Tensor& x, LayerKind kind) const {
  const bool attends = kind.letter == layer_letter::kAttention;
  const bool scans = kind.letter == layer_letter::kMamba || kind.letter == layer_letter::kScan;
  const bool erases =
      kind.letter == layer_letter::kDelta || kind.letter == layer_letter::kKimiDelta;
  const char* name = scans                                            ? "ln_mamba"
                     : erases                                         ? "ln_delta"
                     : kind.letter == layer_letter::kShortConvolution ? "ln_convolution"
                     : kind.letter == layer_letter::kSideBySide       ? "ln_mixers"
                     : attends                                        ? "ln_attention"
                                                                      : "ln_mlp";
  const auto normalize = [=, this](Tape& t) { return norm(t, name, x); };
  const bool again = kind.experts && step_.recomputes("layernorm");
  const Tensor input = again ? tape.remade(normalize) : normalize(tape);
  Tensor branch = lettered_branch(tape, input, kind);
  if (model_.residual_scale) branch = scale(tape, "residual.scale", branch);
  const Tensor out = add(tape, "residual", x, branch);
  tape.drop_names({input, branch});
  return out;
}

}  // namespace tessera
