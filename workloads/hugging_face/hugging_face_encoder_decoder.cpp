// Encoders with decoders: transformers 4.57, models/{t5,switch_transformers}.
#include <algorithm>
#include <string>

#include "workloads/hugging_face/hugging_face_llama.h"

namespace tessera {
namespace {

/// What T5 and Switch Transformers have in common.
void read_stacks(ConfigReader& in, ModelSpec& model) {
  model.family = ModelFamily::switch_transformer;
  model.encoder_layers = in.dimension("num_layers", kMostHuggingFaceLayers);
  model.layers = in.dimension_or("num_decoder_layers", model.encoder_layers);
  model.hidden = in.dimension("d_model");
  model.heads = model.kv_heads = in.dimension("num_heads");
  model.head_dim = in.dimension("d_kv");
  model.ffn = in.dimension("d_ff");
  model.vocab = in.dimension("vocab_size");
  model.hidden_dropout = model.attention_dropout = in.probability_or("dropout_rate", 0.1);
  model.tied_embeddings = in.flag_or("tie_word_embeddings", true);
  constexpr std::int64_t kBuckets = 32;
  if (in.dimension_or("relative_attention_num_buckets", kBuckets) != kBuckets)
    in.fail("relative_attention_num_buckets", "is not 32", "tables of 32 rows are simulated");
}

}  // namespace

void read_switch_transformer(ConfigReader& in, ModelSpec& model) {
  read_stacks(in, model);
  model.activation = in.activation_or("dense_act_fn", Activation::relu);
  model.experts = in.dimension("num_experts");
  model.expert_capacity = in.dimension("expert_capacity");
  const std::int64_t sparse = in.dimension("num_sparse_encoder_layers", kMostHuggingFaceLayers);
  model.moe_every = std::max<std::int64_t>(1, model.encoder_layers / sparse);
  const bool same_in_decoder = in.dimension_or("num_sparse_decoder_layers", sparse) == sparse &&
                               model.layers == model.encoder_layers;
  if (!same_in_decoder) {
    in.fail("num_sparse_decoder_layers", "or num_decoder_layers differ from the encoder's",
            "use equal stacks");
  }
  for (const char* of_this_router :
       {"router_jitter_noise", "router_bias", "encoder_sparse_step", "decoder_sparse_step"})
    in.has(of_this_router);
}

/// relu as in 2019, or the gate of T5 1.1 and its successors.
void read_t5(ConfigReader& in, ModelSpec& model) {
  read_stacks(in, model);
  const std::string projection = in.text_or("feed_forward_proj", "relu");
  if (projection != "relu" && projection != "gated-gelu")
    in.fail("feed_forward_proj", "is " + projection, "known: relu, gated-gelu");
  const bool gated = projection == "gated-gelu";
  model.activation = gated ? Activation::geglu : Activation::relu;
  if (in.flag_or("is_gated_act", gated) != gated)
    in.fail("is_gated_act", "contradicts feed_forward_proj = " + projection, "check both");
  const std::string act = in.text_or("dense_act_fn", gated ? "gelu_new" : "relu");
  if (act != (gated ? "gelu_new" : "relu"))
    in.fail("dense_act_fn", "= " + act + " contradicts feed_forward_proj = " + projection,
            "check both");
  in.has("n_positions");  // of no layer: positions are relative
}

}  // namespace tessera
