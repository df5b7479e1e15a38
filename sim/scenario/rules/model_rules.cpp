// Rules between the dimensions of a model.
#include <algorithm>
#include <utility>

#include "sim/scenario/rules/check_scenario.h"
#include "sim/scenario/rules/counts.h"
#include "sim/scenario/rules/rules.h"

namespace tessera {
namespace {

/// Sizes of Mamba-2 layers and gated delta nets, which a pattern names.
std::vector<Count> lettered_sizes(const ModelSpec& m) {
  return {{"model.mamba_heads", m.mamba_heads},     {"model.mamba_head_dim", m.mamba_head_dim},
          {"model.mamba_state", m.mamba_state},     {"model.mamba_groups", m.mamba_groups},
          {"model.delta_heads", m.delta_heads},     {"model.delta_key_heads", m.delta_key_heads},
          {"model.delta_key_dim", m.delta_key_dim}, {"model.delta_value_dim", m.delta_value_dim}};
}

/// Fields of family llama alone, here and in the next two; 0: as all others are.
std::vector<Count> attention_fields(const ModelSpec& m) {
  return {{"model.window", m.window},
          {"model.window_kv_heads", m.window_kv_heads},
          {"model.window_sinks", m.window_sinks ? 1 : 0},
          {"model.full_every", m.full_every},
          {"model.full_first", m.full_first},
          {"model.attention_pattern", std::ssize(m.attention_pattern)},
          {"model.window_chunks", m.window_chunks ? 1 : 0},
          {"model.attention_sinks", m.attention_sinks ? 1 : 0},
          {"model.attention_softcap", m.attention_softcap ? 1 : 0},
          {"model.kv_rank", m.kv_rank},
          {"model.q_rank", m.q_rank},
          {"model.rope_dim", m.rope_dim},
          {"model.index_heads", m.index_heads},
          {"model.index_head_dim", m.index_head_dim},
          {"model.index_topk", m.index_topk},
          {"model.index_loss", m.index_loss ? 0 : 1},
          {"model.v_head_dim", m.v_head_dim},
          {"model.qk_norm_wide", m.qk_norm_wide ? 1 : 0},
          {"model.qk_norm_plain", m.qk_norm_plain ? 1 : 0},
          {"model.attention_gate", m.attention_gate ? 1 : 0}};
}

std::vector<Count> expert_fields(const ModelSpec& m) {
  return {{"model.expert_ffn", m.expert_ffn},
          {"model.shared_ffn", m.shared_ffn},
          {"model.shared_gate", m.shared_gate ? 1 : 0},
          {"model.dense_layers", m.dense_layers},
          {"model.expert_pattern", std::ssize(m.expert_pattern)},
          {"model.router_groups", m.router_groups},
          {"model.router_sigmoid", m.router_sigmoid ? 1 : 0},
          {"model.router_bias", m.router_bias ? 1 : 0},
          {"model.expert_bias", m.expert_bias ? 1 : 0}};
}

std::vector<Count> block_fields(const ModelSpec& m) {
  const bool of_t5 = m.family == ModelFamily::switch_transformer && m.experts == 0;
  const bool of_llama = (m.activation == Activation::geglu && !of_t5) ||
                        m.activation == Activation::relu_squared ||
                        m.activation == Activation::xielu;
  return {{"model.activation", of_llama ? 1 : 0},
          {"model.logit_softcap", m.logit_softcap ? 1 : 0},
          {"model.norm", static_cast<int>(m.norm)},
          {"model.norm_placement", static_cast<int>(m.norm_placement)},
          {"model.block_order", static_cast<int>(m.block_order)},
          {"model.output_bias", m.output_bias ? 1 : 0},
          {"model.mlp_bias", m.mlp_bias ? 1 : 0},
          {"model.head_bias", m.head_bias ? 1 : 0},
          {"model.embedding_scale", m.embedding_scale ? 1 : 0},
          {"model.residual_scale", m.residual_scale ? 1 : 0},
          {"model.logit_scale", m.logit_scale ? 1 : 0},
          {"model.mtp_layers", m.mtp_layers},
          {"model.layer_pattern", std::ssize(m.layer_pattern)}};
}

void check_llama_alone(const ModelSpec& model, std::vector<Problem>& problems) {
  if (model.family == ModelFamily::llama) return;
  for (const auto& fields_of : {attention_fields, expert_fields, block_fields, lettered_sizes})
    for (const Count& field : fields_of(model)) {
      if (field.value == 0) continue;
      problems.push_back({field.path,
                          field.path + " is for models of family llama",
                          "remove it, or use model.family: llama",
                          {"model.family"}});
    }
}

class LlamaCheck {
 public:
  LlamaCheck(const ModelSpec& model, std::vector<Problem>& problems)
      : m_(model), problems_(problems) {}

  void run() {
    if (m_.family != ModelFamily::llama) return;
    check_window();
    check_attention_pattern();
    check_expert_pattern();
    check_lettered_sizes();
    check_latent();
    check_indexer();
    check_experts();
    if (m_.qk_norm_wide)
      need(m_.qk_norm, "qk_norm_wide", "widens norms of queries and keys, and there are none",
           "set qk_norm: true");
    if (m_.qk_norm_plain)
      need(m_.qk_norm && !m_.qk_norm_wide, "qk_norm_plain",
           "takes weights from norms of each head's queries and keys, and there are none",
           "set qk_norm: true without qk_norm_wide");
  }

 private:
  void need(bool holds, const std::string& field, const std::string& what,
            const std::string& hint) {
    if (!holds) problems_.push_back({"model." + field, "model." + field + " " + what, hint});
  }
  void check_window() {
    if (m_.window > 0) return check_window_heads();
    need(m_.window_kv_heads == 0, "window_kv_heads", "is of windows, and no layer has one",
         "give model.window, or leave it out");
    need(!m_.window_sinks, "window_sinks", "is of windows, and no layer has one",
         "give model.window, or leave it out");
    need(m_.full_every == 0, "full_every", "names layers without a window, and none has one",
         "give model.window, or leave it out");
    need(m_.full_first == 0, "full_first", "names layers without a window, and none has one",
         "give model.window, or leave it out");
    need(!m_.window_chunks, "window_chunks", "is of windows, and no layer has one",
         "give model.window, or leave it out");
  }
  void check_window_heads() {
    const std::int64_t keys = m_.window_kv_heads;
    need(keys == 0 || m_.heads % keys == 0, "window_kv_heads",
         "= " + std::to_string(keys) + " does not divide heads = " + std::to_string(m_.heads),
         "use " + listed_values(divisors(m_.heads, m_.heads)));
    need(keys == 0 || m_.kv_rank == 0, "window_kv_heads",
         "is not simulated with latent attention, which has keys for every head", "leave it out");
    need(!m_.window_sinks || !m_.attention_sinks, "window_sinks",
         "and attention_sinks both say which layers have sinks", "keep one");
  }
  /// A letter per layer at most, of those that `letters` has.
  void check_letters(const std::string& field, const std::string& pattern,
                     const std::string& letters) {
    need(pattern.find_first_not_of(letters) == std::string::npos, field,
         "= " + pattern + " has other letters than " + letters,
         "write a letter per layer, or those that repeat");
    need(std::ssize(pattern) <= std::max<std::int64_t>(m_.layers, 1), field,
         "has " + std::to_string(pattern.size()) + " letters for " + std::to_string(m_.layers) +
             " layers",
         "write no more than one per layer");
  }
  void check_attention_pattern() {
    const std::string& pattern = m_.attention_pattern;
    if (pattern.empty()) return;
    check_letters("attention_pattern", pattern, "wfn");
    need(m_.full_every == 0 && m_.full_first == 0, "attention_pattern",
         "says which layers have a window, and so do full_every and full_first", "keep one");
    need((pattern.find('w') != std::string::npos) == (m_.window > 0), "attention_pattern",
         "= " + pattern + " and model.window = " + std::to_string(m_.window) +
             " contradict each other",
         "write w for layers with a window, and give its size");
  }
  void check_expert_pattern() {
    const std::string& pattern = m_.expert_pattern;
    if (pattern.empty()) return;
    check_letters("expert_pattern", pattern, "E-");
    need(m_.layer_pattern.empty() && m_.dense_layers == 0, "expert_pattern",
         "says which layers have experts, and so do layer_pattern and dense_layers", "keep one");
    need(m_.experts > 0 && expert_layers_of(m_) > 0, "expert_pattern",
         "= " + pattern + " and model.experts = " + std::to_string(m_.experts) +
             " contradict each other",
         "write E for layers with experts, and give their number");
  }
  void check_lettered_sizes() {
    if (!m_.layer_pattern.empty()) return;
    for (const Count& size : lettered_sizes(m_))
      if (size.value != 0)
        problems_.push_back({size.path, size.path + " is for layers of a pattern",
                             "give model.layer_pattern, or leave it out"});
  }
  void check_latent() {
    const std::string head = std::to_string(m_.head_dim);
    need(m_.rope_dim <= m_.head_dim, "rope_dim",
         "= " + std::to_string(m_.rope_dim) + " exceeds head_dim = " + head,
         "use a number up to " + head);
    need(m_.rope_dim % 2 == 0, "rope_dim",
         "= " + std::to_string(m_.rope_dim) + " is odd: positions turn pairs",
         "use an even number");
    if (m_.kv_rank == 0) return check_plain_heads();
    need(m_.rope_dim > 0 && m_.rope_dim < m_.head_dim, "kv_rank",
         "is latent attention: a part of head_dim = " + head + " has positions, a part has none",
         "give model.rope_dim, from 2 to below " + head);
    need(m_.kv_heads == m_.heads, "kv_heads",
         "= " + std::to_string(m_.kv_heads) + ": latent attention has keys for each of the " +
             std::to_string(m_.heads) + " heads",
         "leave it out");
    need(!m_.qk_norm && !m_.qkv_bias, "kv_rank",
         "is latent attention, whose norms are those of the ranks, and that has no biases",
         "leave out qk_norm and qkv_bias");
    need(!m_.attention_gate, "attention_gate", "is not simulated with latent attention",
         "leave it out, or kv_rank");
  }
  void check_indexer() {
    const std::string none = "is of an indexer, and there is none";
    if (m_.index_heads == 0) {
      need(m_.index_head_dim == 0, "index_head_dim", none, "give index_heads, or leave it out");
      need(m_.index_topk == 0, "index_topk", none, "give index_heads, or leave it out");
      need(m_.index_loss, "index_loss", none, "give index_heads, or leave it out");
      return;
    }
    need(m_.kv_rank > 0 && m_.q_rank > 0, "index_heads",
         "is of an indexer, which latent attention with a rank of queries has",
         "give kv_rank and q_rank, or leave it out");
    need(m_.index_topk > 0, "index_topk", "is 0: the indexer chooses nothing",
         "say how many tokens (DeepSeek V3.2: 2048)");
    need(m_.index_head_dim >= m_.rope_dim && m_.index_head_dim > 0, "index_head_dim",
         "= " + std::to_string(m_.index_head_dim) + " is less than rope_dim = " +
             std::to_string(m_.rope_dim) + ", the part that positions turn",
         "use rope_dim or more (DeepSeek V3.2: 128)");
    need(m_.window == 0 && m_.attention_pattern.empty() && m_.layer_pattern.empty(), "index_heads",
         "is not simulated with layers that differ in their attention",
         "leave out window, attention_pattern and layer_pattern");
    need(!m_.attention_sinks && !m_.attention_softcap && !m_.output_bias, "index_heads",
         "is not simulated with attention_sinks, attention_softcap or output_bias",
         "leave them out");
  }
  /// Query ranks and sizes of values without latent attention (Step-3, MiMo-V2-Flash).
  void check_plain_heads() {
    const bool other_values = value_dim_of(m_) != m_.head_dim;
    need(m_.q_rank == 0 || (!m_.qkv_bias && !m_.attention_gate), "q_rank",
         "is not simulated with qkv_bias or attention_gate", "leave them out, or q_rank");
    need(!other_values || !m_.attention_gate, "v_head_dim",
         "differs from head_dim beside attention_gate, which is not simulated",
         "leave out one of them");
  }
  void check_experts() {
    const std::string without = "is of a model with experts";
    const std::string hint = "give model.experts and experts_per_token, or leave it out";
    if (m_.experts == 0) {
      need(m_.expert_ffn == 0, "expert_ffn", without, hint);
      need(m_.shared_ffn == 0, "shared_ffn", without, hint);
      need(m_.dense_layers == 0, "dense_layers", without, hint);
      need(m_.router_groups == 0, "router_groups", without, hint);
      need(!m_.router_sigmoid, "router_sigmoid", without, hint);
      need(!m_.router_bias, "router_bias", without, hint);
      need(!m_.expert_bias, "expert_bias", without, hint);
    }
    need(!m_.mlp_bias || m_.shared_ffn > 0 || m_.experts == 0 || !m_.layer_pattern.empty() ||
             expert_layers_of(m_) < m_.layers,
         "mlp_bias", "is of dense feed-forwards, and all layers have experts",
         "give model.expert_bias, or leave it out");
    need(m_.activation != Activation::xielu || (m_.experts == 0 && !m_.mlp_bias), "activation",
         "xielu is of dense feed-forwards without biases", "leave out experts and mlp_bias");
    need(m_.shared_ffn > 0 || !m_.shared_gate, "shared_gate",
         "weighs shared experts, of which there are none",
         "give model.shared_ffn, or leave it out");
    need(m_.dense_layers < std::max<std::int64_t>(m_.layers, 1), "dense_layers",
         "= " + std::to_string(m_.dense_layers) + " leaves none of the " +
             std::to_string(m_.layers) + " layers experts",
         "use fewer, or leave out the experts");
    need(m_.router_groups == 0 || m_.experts % m_.router_groups == 0, "router_groups",
         "= " + std::to_string(m_.router_groups) +
             " does not divide experts = " + std::to_string(m_.experts),
         "use " + listed_values(divisors(m_.experts, m_.experts)));
  }

  const ModelSpec& m_;
  std::vector<Problem>& problems_;
};

/// An image model is its architecture; dimensions of a transformer would have no effect.
void check_vision(const ModelSpec& model, std::vector<Problem>& problems) {
  if (model.architecture == VisionArchitecture::none)
    problems.push_back({"model.architecture",
                        "model.architecture is missing",
                        "family: vision needs one, such as architecture: resnet50",
                        {"model.family"}});
  const Count dimensions[] = {{"model.layers", model.layers},
                              {"model.hidden", model.hidden},
                              {"model.heads", model.heads},
                              {"model.kv_heads", model.kv_heads},
                              {"model.head_dim", model.head_dim},
                              {"model.ffn", model.ffn},
                              {"model.vocab", model.vocab},
                              {"model.qk_norm", model.qk_norm ? 1 : 0},
                              {"model.qkv_bias", model.qkv_bias ? 1 : 0}};
  const auto refuse = [&](const std::string& field, const std::string& text) {
    problems.push_back({field,
                        text + " in an image model, whose architecture says it",
                        "remove it",
                        {"model.family"}});
  };
  for (const Count& dimension : dimensions)
    if (dimension.value != 0) refuse(dimension.path, dimension.text());
  const ModelSpec plain;
  // of a file that gives none gelu, of a ModelSpec gelu_new
  const bool activation =
      model.activation != Activation::gelu && model.activation != plain.activation;
  const std::pair<const char*, bool> others[] = {
      {"model.activation", activation},
      {"model.hidden_dropout", model.hidden_dropout != plain.hidden_dropout},
      {"model.attention_dropout", model.attention_dropout != plain.attention_dropout},
      {"model.tied_embeddings", model.tied_embeddings != plain.tied_embeddings}};
  for (const auto& [field, is_given] : others)
    if (is_given) refuse(field, field);
}

void check_no_images(const ModelSpec& model, std::vector<Problem>& problems) {
  const Count counts[] = {{"model.architecture", static_cast<int>(model.architecture)},
                          {"model.image_size", model.image_size},
                          {"model.classes", model.classes}};
  for (const Count& count : counts) {
    if (count.value == 0) continue;
    problems.push_back({count.path,
                        count.path + " is given in a model that reads no images",
                        "remove it, or use family: vision",
                        {"model.family"}});
  }
}

/// Families with ALiBi have no position embeddings, grouped queries or experts.
void check_alibi(const ModelSpec& model, std::vector<Problem>& problems) {
  if (!has_alibi(model.family)) return;
  const std::string family = model.family == ModelFamily::bloom ? "bloom" : "mpt";
  const auto refuse = [&](const std::string& field, std::int64_t value, const std::string& what,
                          const std::string& hint) {
    problems.push_back({field,
                        field + " = " + std::to_string(value) + ": family " + family + what,
                        hint,
                        {"model.family"}});
  };
  if (model.max_positions > 0)
    refuse("model.max_positions", model.max_positions, " has ALiBi and no position embeddings",
           "leave it out, or use model.family: gpt2");
  if (model.kv_heads != model.heads)
    refuse("model.kv_heads", model.kv_heads, " has as many key-value heads as heads",
           "leave it out, or use model.family: llama");
  if (model.experts > 0)
    refuse("model.experts", model.experts, " has no experts", "use model.family: gpt2 or llama");
}

}  // namespace

std::vector<Problem> check_model(const ModelSpec& model) {
  std::vector<Problem> problems;
  check_llama_alone(model, problems);
  check_family_fields(model, problems);
  LlamaCheck(model, problems).run();
  if (model.family == ModelFamily::vision) {
    check_vision(model, problems);
    return problems;
  }
  check_no_images(model, problems);
  const Count heads{"model.heads", model.heads};
  const Count kv_heads{"model.kv_heads", model.kv_heads};
  check_divides(kv_heads, heads, divisors(heads.value, heads.value), problems);
  if (model.head_dim <= 0) {
    problems.push_back({"model.head_dim",
                        "model.heads = " + std::to_string(model.heads) +
                            " exceeds hidden = " + std::to_string(model.hidden),
                        "give model.head_dim",
                        {"model.heads", "model.hidden"}});
  }
  const bool routed = model.experts > 0 &&
                      (model.family == ModelFamily::llama || model.family == ModelFamily::gpt2);
  if (routed && (model.experts_per_token < 1 || model.experts_per_token > model.experts)) {
    problems.push_back({"model.experts_per_token",
                        "model.experts_per_token = " + std::to_string(model.experts_per_token) +
                            " with model.experts = " + std::to_string(model.experts),
                        "give 1 to " + std::to_string(model.experts),
                        {"model.experts"}});
  }
  check_alibi(model, problems);
  const bool counted = model.experts > 0 && !routed && !has_alibi(model.family);
  if (counted && (model.expert_capacity == 0 || model.moe_every == 0)) {
    problems.push_back({"model.experts",
                        "model.experts = " + std::to_string(model.experts) +
                            " needs expert_capacity and moe_every",
                        "give both, 1 or more",
                        {"model.expert_capacity", "model.moe_every"}});
  }
  return problems;
}

}  // namespace tessera
