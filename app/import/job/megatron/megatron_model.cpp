// Megatron-LM's arguments: the model.
#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "app/import/job/megatron/megatron_job.h"
#include "hw/units/lower_case.h"
#include "workloads/model_spec.h"

namespace tessera {
namespace {

struct Tokenizer {
  std::string_view part;  ///< of its type or its model's name, in lower case
  std::int64_t tokens;
};

/// Tokens of published tokenizers.
constexpr std::array<Tokenizer, 15> kTokenizers{{{"gpt2bpe", 50257},
                                                 {"bertwordpiecelowercase", 30522},
                                                 {"bertwordpiececase", 28996},
                                                 {"llama-3", 128256},
                                                 {"llama3", 128256},
                                                 {"llama-2", 32000},
                                                 {"llama2", 32000},
                                                 {"mixtral-8x7b", 32000},
                                                 {"mistral-7b-v0.3", 32768},
                                                 {"mistral-7b-instruct-v0.3", 32768},
                                                 {"mistral-7b", 32000},
                                                 {"qwen3-", 151669},
                                                 {"deepseek-v3", 128815},
                                                 {"gpt-neox-20b", 50277},
                                                 {"gpt2", 50257}}};

}  // namespace

void MegatronJob::read_model(const std::string& title) {
  draft_.set_text("model.name", title);
  const std::string norm = lower_case(text("--normalization").value_or("LayerNorm"));
  const bool root_mean_square = norm == "rmsnorm" || flag("--use-rmsnorm");
  if (norm != "rmsnorm" && norm != "layernorm")
    cannot("--normalization", "is no norm that is simulated", "use LayerNorm or RMSNorm");
  const std::string gate = lower_case(text("--glu-activation").value_or(""));
  gated_ = flag("--swiglu") || gate == "swiglu";
  if (!gate.empty() && gate != "swiglu") {
    cannot("--glu-activation", "is a gate that is not simulated", "swiglu is");
    gated_ = true;
  }
  if (flag("--quick-geglu")) {
    draft_.approximate("--quick-geglu: its kernels count as those of --swiglu");
    gated_ = true;
  }
  for (const char* within : {"--activation-func-clamp-value", "--glu-linear-offset"})
    if (gated_)
      in_.number(within);  // of the gate's kernel
    else if (given(within))
      cannot(within, "is not simulated without a gate");
  set_position_kind();
  is_llama_ = root_mean_square || positions_ == "rope";
  draft_.set("model.family", is_llama_ ? "llama" : positions_ == "alibi" ? "bloom" : "gpt2");
  if (is_llama_ && !root_mean_square) draft_.set("model.norm", "layer_norm");
  read_dimensions();
  read_attention_variant();
  read_hybrid();
  read_feed_forward();
  read_positions();
  read_experts();
  if (is_llama_)
    check_llama();
  else
    check_gpt();
  read_dropout("--hidden-dropout", "model.hidden_dropout");
  read_dropout("--attention-dropout", "model.attention_dropout");
  const bool untied = flag("--untie-embeddings-and-output-weights");
  draft_.set("model.tied_embeddings", untied ? "false" : "true");
}

void MegatronJob::read_dimensions() {
  const char* layers = given("--num-layers") ? "--num-layers" : "--encoder-num-layers";
  layers_ = needed(given(layers) ? layers : "--num-layers");
  draft_.set("model.layers", layers_);
  hidden_ = needed("--hidden-size");
  draft_.set("model.hidden", hidden_);
  const std::int64_t heads = needed("--num-attention-heads");
  draft_.set("model.heads", heads);
  const auto of_deepspeed = integer("--num-key-value-heads");
  if (flag("--group-query-attention"))
    draft_.set("model.kv_heads", integer("--num-query-groups").value_or(1));
  else if (of_deepspeed && *of_deepspeed != heads)
    draft_.set("model.kv_heads", *of_deepspeed);
  if (const auto size = integer("--kv-channels")) draft_.set("model.head_dim", *size);
  const bool plain = flag("--qk-l2-norm");  // Llama 4
  if (flag("--qk-layernorm") || plain) draft_.set("model.qk_norm", "true");
  if (plain && is_llama_)
    draft_.set("model.qk_norm_plain", "true");
  else if (plain)
    cannot("--qk-l2-norm", "is not simulated with layer norms and learned positions");
}

void MegatronJob::read_feed_forward() {
  const bool by_switch = gated_ && given("--swiglu");
  // Megatron's default of a gated feed-forward: two thirds of 4 h, down to a multiple of 64.
  const std::int64_t usual = by_switch ? 4 * hidden_ * 2 / 3 / 64 * 64 : 4 * hidden_;
  const auto ffn = integer("--ffn-hidden-size");
  const auto experts_ffn = given("--num-experts") ? integer("--moe-ffn-hidden-size") : std::nullopt;
  const bool apart = is_llama_ && experts_ffn && ffn &&
                     expert_letters().find(layer_letter::kFeedForward) != std::string::npos;
  if (apart && experts_ffn != ffn) draft_.set("model.expert_ffn", experts_ffn.value_or(1));
  draft_.set("model.ffn",
             experts_ffn && !apart ? *experts_ffn : ffn.value_or(std::max<std::int64_t>(usual, 1)));
  const bool squares = flag("--squared-relu") && is_llama_ && !gated_;
  draft_.set("model.activation", gated_      ? "swiglu"
                                 : squares   ? "relu_squared"
                                 : is_llama_ ? "gelu"
                                             : "gelu_new");
  if (flag("--squared-relu") && !squares)
    cannot("--squared-relu", "is not simulated with layer norms and learned positions");
}

void MegatronJob::set_position_kind() {
  positions_ = in_.word("--position-embedding-type").value_or("learned_absolute");  // "none" is one
  const bool none = flag("--no-position-embedding");
  if (flag("--use-rotary-position-embeddings")) positions_ = "rope";
  if (positions_ == "yarn") positions_ = "rope";
  if (positions_ == "learned_absolute" && none) positions_ = "none";
}

void MegatronJob::read_positions() {
  const std::string& kind = positions_;
  const auto positions = integer("--max-position-embeddings");
  const bool learned = kind == "learned_absolute";
  const bool known = learned || kind == "rope" || kind == "alibi" || kind == "none";
  if (!known) cannot("--position-embedding-type", "is not simulated");
  const char* argument = given("--position-embedding-type") ? "--position-embedding-type"
                         : kind == "rope"                   ? "--use-rotary-position-embeddings"
                                                            : "--position-embedding-type";
  const auto share = in_.number("--rotary-percent");
  if (share && *share < 1 && kind == "rope" && is_llama_) {
    const std::int64_t heads =
        std::max<std::int64_t>(integer("--num-attention-heads").value_or(1), 1);
    const std::int64_t size = integer("--kv-channels").value_or(hidden_ / heads);
    draft_.set("model.rope_dim", static_cast<std::int64_t>(*share * static_cast<double>(size)));
  } else if (share && *share < 1 && kind == "rope")
    cannot("--rotary-percent", "is not simulated: all of a head is turned");
  if (is_llama_ && kind != "rope" && kind != "none")
    cannot(argument, (given(argument) ? "is " : "is missing, and its default is ") + kind +
                         ": family llama (--normalization RMSNorm) has rotary positions or none");
  if (is_llama_) return;
  draft_.set("model.max_positions", learned && positions ? *positions : 0);
  if (learned && !positions) needed("--max-position-embeddings");
}

void MegatronJob::check_llama() {
  read_features();
  if (flag("--embed-layernorm"))
    cannot("--embed-layernorm", "is not simulated in family llama (--normalization RMSNorm)");
  read_biases();
}

/// Linear layers have biases unless --disable-bias-linear takes them.
void MegatronJob::read_biases() {
  const bool without = flag("--disable-bias-linear");
  const bool all = flag("--add-bias-linear") || !without;
  const bool lettered = hybrid_ || paired_;
  if (flag("--add-qkv-bias") || (all && !lettered)) draft_.set("model.qkv_bias", "true");
  if (!all) return;
  if (lettered || given("--squared-relu") || given("--multi-latent-attention"))
    return cannot("--disable-bias-linear",
                  "is missing: biases are not simulated with layers of a pattern, squared ReLU or "
                  "latent attention");
  draft_.set("model.output_bias", "true");
  const bool dense = !has_experts_ || expert_letters().find('-') != std::string::npos;
  if (dense) draft_.set("model.mlp_bias", "true");
  if (has_experts_) draft_.set("model.expert_bias", "true");
}

void MegatronJob::check_gpt() {
  const bool alibi = positions_ == "alibi";
  const bool embedding_norm = flag("--embed-layernorm");
  if (alibi && !embedding_norm)
    cannot("--embed-layernorm", "is missing: family bloom (ALiBi) has a norm behind the embedding");
  if (!alibi && embedding_norm)
    cannot("--embed-layernorm", "is not simulated without --position-embedding-type alibi");
  in_.take("--add-qkv-bias");
  in_.take("--add-bias-linear");
  if (flag("--disable-bias-linear"))
    cannot("--disable-bias-linear",
           "is not simulated in a model with layer norms, whose linear "
           "layers have biases");
  if (has_experts_ && gated_)
    cannot("--swiglu", "is not simulated in experts of a model with layer norms");
}

/// Losses that balance experts cost nothing here. Sinkhorn's rule goes over the scores until they
/// change little, and the host waits for every round.
void MegatronJob::read_balance() {
  std::istringstream kinds(text("--moe-router-load-balancing-type").value_or("aux_loss"));
  for (std::string kind; kinds >> kind;) {
    if (kind == "sinkhorn")
      cannot("--moe-router-load-balancing-type",
             "is sinkhorn: how many rounds it takes is for the scores to say, and not simulated",
             "use aux_loss, seq_aux_loss, global_aux_loss or none, or import with --lenient, which "
             "leaves the rounds out and says so");
    else if (kind != "aux_loss" && kind != "seq_aux_loss" && kind != "global_aux_loss" &&
             kind != "none")
      cannot("--moe-router-load-balancing-type", "is not known: " + kind,
             "use aux_loss, seq_aux_loss, global_aux_loss or none");
  }
}

/// Experts in every layer, as Megatron-Core routes tokens to them.
void MegatronJob::read_experts() {
  const auto experts = integer("--num-experts");
  has_experts_ = experts && *experts > 1;
  if (!has_experts_) return;
  draft_.set("model.experts", *experts);
  read_balance();
  const char* topk = given("--moe-router-topk") ? "--moe-router-topk" : "--topk";
  draft_.set("model.experts_per_token", integer(topk).value_or(deepspeed_ ? 1 : 2));
  if (deepspeed_)
    cannot("--num-experts",
           "with --deepspeed: DeepSpeed's gates and dispatch are not simulated, "
           "those of Megatron-Core are");
  const auto every = integer("--expert-interval");
  if (deepspeed_ ? every.value_or(2) != 1 : every && *every != 1)
    cannot("--expert-interval", "is not 1: every layer has experts in the simulation");
  if (text("--mlp-type").value_or("standard") != "standard")
    cannot("--mlp-type", "is not simulated");
  if (hybrid_ || paired_)
    text("--moe-layer-freq");  // the pattern says it
  else
    read_expert_layers();
  const bool grouped = flag("--moe-grouped-gemm");
  if (!grouped && !deepspeed_)
    cannot("--moe-grouped-gemm", "is missing: experts one after the other are not simulated");
}

void MegatronJob::read_dropout(const char* argument, const char* field) {
  const auto share = in_.number(argument);
  draft_.set(field, share ? *text(argument) : "0.1");
}

std::int64_t MegatronJob::vocabulary_of_tokenizer() {
  const std::string type = text("--tokenizer-type").value_or("");
  const std::string named = text("--tokenizer-model").value_or("") + " " +
                            text("--tokenizer-name-or-path").value_or("") + " " +
                            text("--patch-tokenizer-type").value_or("");
  const std::string all =
      lower_case(type.empty() && named.size() < 3 ? "GPT2BPE" : type + " " + named);
  for (const auto& [part, tokens] : kTokenizers) {
    if (all.find(part) == std::string::npos) continue;
    draft_.assume("vocabulary of " + std::to_string(tokens) + " tokens: the tokenizer " +
                  (type.empty() ? "" : type + " ") + "has it, not the arguments");
    return tokens;
  }
  std::string shown = type + " " + named;
  while (shown.ends_with(' ')) shown.pop_back();
  problem("--vocab-size", "is missing: the tokenizer " + shown + " has it, not the arguments",
          "add --vocab with the number of tokens");
  return 1;
}

/// Tokens ahead of padding.
std::int64_t MegatronJob::vocabulary() {
  if (options_.vocabulary > 0) return options_.vocabulary;
  const std::int64_t extra = integer("--extra-vocab-size", 0).value_or(0);
  const auto size = integer("--vocab-size");
  if (!size) return vocabulary_of_tokenizer() + extra;
  // This tokenizer has an end of document behind the numbers.
  return *size + (text("--tokenizer-type").value_or("") == "NullTokenizer" ? 1 : 0) + extra;
}

/// The embedding has a multiple of 128 rows per tensor-parallel rank in the simulation. What a job
/// pads to otherwise is its vocabulary, where that is such a multiple.
void MegatronJob::read_vocabulary() {
  const std::int64_t unit = 128 * std::min<std::int64_t>(tensor_, 1'000'000);
  const auto padded_to = [](std::int64_t size, std::int64_t multiple) {
    return (size + multiple - 1) / multiple * multiple;
  };
  const char* fixed = given("--padded-vocab-size") ? "--padded-vocab-size" : "--pad-vocab-size-to";
  const auto rows = options_.vocabulary > 0 ? std::nullopt : integer(fixed);
  const auto divisor = integer("--make-vocab-size-divisible-by");
  const std::int64_t tokens = rows ? *rows : vocabulary();
  if (tokens <= 1) return draft_.set("model.vocab", 1);  // not known, and said so
  const std::int64_t multiple = std::min<std::int64_t>(divisor.value_or(128), 1'000'000'000) *
                                std::min<std::int64_t>(tensor_, 1'000'000);
  const std::int64_t padded = rows ? *rows : padded_to(tokens, multiple);
  const bool same = padded_to(tokens, unit) == padded;
  draft_.set("model.vocab", same ? tokens : padded);
  if (same || padded % unit == 0) return;
  const std::int64_t simulated = padded_to(padded, unit);
  if ((simulated - padded) * 100 <= padded)
    return draft_.approximate("the embedding has " + std::to_string(padded) +
                              " rows: a multiple of 128 for each tensor-parallel rank, " +
                              std::to_string(simulated) + ", is simulated");
  cannot(rows ? fixed : "--make-vocab-size-divisible-by",
         "gives an embedding of " + std::to_string(padded) + " rows: the simulated one has " +
             std::to_string(simulated) + ", a multiple of 128 for each of " +
             std::to_string(tensor_) + " tensor-parallel ranks");
}

}  // namespace tessera
