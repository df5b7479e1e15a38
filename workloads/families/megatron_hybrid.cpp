// Layers of one kind each, as the letters of a pattern say: Megatron-Core ssm/mamba_block.py and
// mamba_mixer.py.
#include "workloads/families/megatron_model.h"
#include "workloads/ops/mamba.h"
#include "workloads/ops/pointwise.h"
#include "workloads/ops/views.h"

namespace tessera {

/// Tensor-parallel ranks hold some of the heads and of the groups.
Tensor MegatronModel::mamba(Tape& tape, const Tensor& x) const {
  const MambaShape shape{.sequences = b_,
                         .positions = s_,
                         .heads = model_.mamba_heads / tensor_,
                         .head_dim = model_.mamba_head_dim,
                         .state = model_.mamba_state,
                         .groups = model_.mamba_groups / tensor_};
  const Tensor wide = column(tape, "mamba.in", x, shape.projected());
  const Tensor by_sequence =
      contiguous(tape, "mamba.transpose", transpose(tape, wide, 0, 1));  // [b, s, ..]
  const Tensor rows = view(tape, by_sequence, {b_ * s_, shape.projected()});
  const Tensor mixed = view(tape, mamba_scan(tape, "mamba", rows, shape), {b_, s_, shape.inner()});
  const Tensor by_position = contiguous(tape, "mamba.transpose_back", transpose(tape, mixed, 0, 1));
  return row(tape, "mamba.out", by_position);
}

Tensor MegatronModel::lettered_layer(Tape& tape, const Tensor& x, LayerKind kind) const {
  const bool mixes = kind.letter == layer_letter::kMamba;
  const bool attends = kind.letter == layer_letter::kAttention;
  const char* name = mixes ? "ln_mamba" : attends ? "ln_attention" : "ln_mlp";
  const auto normalize = [=, this](Tape& t) { return norm(t, name, x); };
  const bool again = kind.experts && step_.recomputes("layernorm");
  const Tensor input = again ? tape.remade(normalize) : normalize(tape);
  Tensor branch = mixes     ? mamba(tape, input)
                  : attends ? attention(tape, input, kind)
                            : feed_forward(tape, input, kind);
  if (model_.residual_scale) branch = scale(tape, "residual.scale", branch);
  const Tensor out = add(tape, "residual", x, branch);
  tape.drop_names({input, branch});
  return out;
}

}  // namespace tessera
