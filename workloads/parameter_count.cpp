#include "workloads/parameter_count.h"

#include "hw/units/formatted.h"
#include "workloads/hugging_face/llama_parameters.h"
#include "workloads/model_graph.h"
#include "workloads/vision/architectures.h"

namespace tessera {
namespace {

/// nn.Linear with bias.
std::int64_t linear(std::int64_t in, std::int64_t out) {
  return in * out + out;
}

std::int64_t attention_width(const ModelSpec& m) {
  return m.heads * m.head_dim;
}

/// Separate or fused q, k, v and the output projection, with biases.
std::int64_t biased_attention(const ModelSpec& m) {
  return linear(m.hidden, attention_width(m)) + 2 * linear(m.hidden, m.kv_heads * m.head_dim) +
         linear(attention_width(m), m.hidden);
}

/// The two branches of a gated one have no biases.
std::int64_t biased_feed_forward(const ModelSpec& m) {
  const bool gated = m.activation == Activation::swiglu;
  return (gated ? 2 * m.hidden * m.ffn : linear(m.hidden, m.ffn)) + linear(m.ffn, m.hidden);
}

std::int64_t output_projection(const ModelSpec& m) {
  return m.tied_embeddings ? 0 : m.vocab * m.hidden;
}

/// gpt2, and opt with two more rows of positions.
std::int64_t count_decoder(const ModelSpec& m, std::int64_t positions) {
  const std::int64_t norm = 2 * m.hidden;
  const bool gated = m.activation == Activation::swiglu;
  const std::int64_t matrices = gated ? 3 : 2;  // and the router
  const std::int64_t experts = m.experts * (matrices * m.hidden * m.ffn + m.hidden);
  const std::int64_t feed_forward = m.experts > 0 ? experts : biased_feed_forward(m);
  const std::int64_t head_norms = m.qk_norm ? 2 * 2 * m.head_dim : 0;
  const std::int64_t layer = biased_attention(m) + feed_forward + 2 * norm + head_norms;
  return (m.vocab + positions) * m.hidden + m.layers * layer + norm + output_projection(m);
}

/// gpt2 without positions, and the norm behind the embedding.
std::int64_t count_bloom(const ModelSpec& m) {
  return count_decoder(m, 0) + 2 * m.hidden;
}

/// Matrices and the weights of norms.
std::int64_t count_mpt(const ModelSpec& m) {
  const std::int64_t layer =
      4 * m.hidden * attention_width(m) + 2 * m.hidden * m.ffn + 2 * m.hidden;
  return m.vocab * m.hidden + m.layers * layer + m.hidden + output_projection(m);
}

std::int64_t count_bert(const ModelSpec& m) {
  const std::int64_t norm = 2 * m.hidden;
  const std::int64_t embeddings = (m.vocab + m.max_positions + m.token_types) * m.hidden + norm;
  const std::int64_t layer = biased_attention(m) + biased_feed_forward(m) + 2 * norm;
  if (m.outputs > 0) return embeddings + m.layers * layer + linear(m.hidden, m.outputs);
  const std::int64_t pooler = linear(m.hidden, m.hidden);
  const std::int64_t masked_words =
      linear(m.hidden, m.hidden) + norm + m.vocab + output_projection(m);
  const std::int64_t next_sentence = linear(m.hidden, 2);
  return embeddings + m.layers * layer + pooler + masked_words + next_sentence;
}

/// Layers i with i % moe_every == 1 (all, for 1).
std::int64_t sparse_layers(std::int64_t layers, std::int64_t moe_every) {
  if (moe_every == 0) return 0;
  return moe_every == 1 ? layers : (layers + moe_every - 2) / moe_every;
}

std::int64_t count_switch(const ModelSpec& m) {
  constexpr std::int64_t kBuckets = 32;  // relative_attention_num_buckets
  const std::int64_t attention = 4 * m.hidden * attention_width(m);
  const std::int64_t norm = m.hidden;
  const std::int64_t dense = (m.activation == Activation::geglu ? 3 : 2) * m.hidden * m.ffn;
  const std::int64_t sparse = m.experts * (dense + m.hidden);  // with the router's classifier
  const auto stack = [&](std::int64_t layers, std::int64_t layer) {
    const std::int64_t routed = m.experts > 0 ? sparse_layers(layers, m.moe_every) : 0;
    return layers * layer + routed * sparse + (layers - routed) * dense + norm + kBuckets * m.heads;
  };
  return m.vocab * m.hidden + stack(m.encoder_layers, attention + 2 * norm) +
         stack(m.layers, 2 * attention + 3 * norm) + output_projection(m);
}

std::int64_t count_vision(const ModelSpec& m) {
  StepOptions step;
  step.mode = StepMode::inference;
  step.micro_batch = step.global_batch = 1;
  return vision_blocks(m, step).parameters();
}

/// Of one expert, without its part of the router.
std::int64_t expert_parameters(const ModelSpec& m) {
  if (m.family == ModelFamily::llama) return llama_expert_parameters(m);
  const bool gated = m.family == ModelFamily::gpt2 && m.activation == Activation::swiglu;
  return (gated ? 3 : 2) * m.hidden * m.ffn;
}

std::int64_t routed_layers(const ModelSpec& m) {
  if (m.family != ModelFamily::switch_transformer) return expert_layers_of(m);
  return sparse_layers(m.encoder_layers, m.moe_every) + sparse_layers(m.layers, m.moe_every);
}

std::string number_text(std::int64_t count) {
  const bool billions = count >= 1'000'000'000;
  return formatted("%.2f %s", static_cast<double>(count) / (billions ? 1e9 : 1e6),
                   billions ? "billion" : "million");
}

}  // namespace

ParameterCounts parameter_counts(const ModelSpec& model) {
  return parameter_counts(model, parameter_count(model));
}

ParameterCounts parameter_counts(const ModelSpec& model, std::int64_t total) {
  ParameterCounts counts{.total = total, .active = total};
  if (model.experts == 0) return counts;
  const std::int64_t met =
      model.family == ModelFamily::switch_transformer ? 1 : model.experts_per_token;
  counts.active -= routed_layers(model) * (model.experts - met) * expert_parameters(model);
  return counts;
}

std::string to_text(const ParameterCounts& counts) {
  const std::string total = number_text(counts.total) + " parameters";
  if (counts.active == counts.total) return total;
  return total + ", " + number_text(counts.active) + " active";
}

std::int64_t parameter_count(const ModelSpec& model) {
  constexpr std::int64_t kOptPositionOffset = 2;
  switch (model.family) {
    case ModelFamily::gpt2:
      return count_decoder(model, model.max_positions);
    case ModelFamily::opt:
      return count_decoder(model, model.max_positions + kOptPositionOffset);
    case ModelFamily::bert:
      return count_bert(model);
    case ModelFamily::llama:
      return llama_parameters(model);
    case ModelFamily::switch_transformer:
      return count_switch(model);
    case ModelFamily::bloom:
      return count_bloom(model);
    case ModelFamily::mpt:
      return count_mpt(model);
    case ModelFamily::vision:
      return count_vision(model);
  }
  return 0;
}

}  // namespace tessera
