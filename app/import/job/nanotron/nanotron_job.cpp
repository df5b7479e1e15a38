// nanotron's YAML (src/nanotron/config/*.py of December 2024).
#include "app/import/job/nanotron/nanotron_job.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "app/import/job/deepspeed_config.h"
#include "app/import/job/judged_keys.h"
#include "app/import/job/nanotron/nanotron_keys.h"
#include "app/import/job/scenario_draft.h"
#include "hw/units/lower_case.h"

namespace tessera {
namespace {

class NanotronJob {
 public:
  NanotronJob(ForeignFields in, const JobOptions& options, std::string name)
      : in_(std::move(in)), options_(options), name_(std::move(name)) {}

  ImportedJob read() {
    if (!options_.model.empty())
      throw InputError({"--model", "is not for files of nanotron, which describe the model",
                        "leave it out, or correct model.model_config of " + name_});
    draft_.set_text("name", stem());
    set_framework();
    read_model();
    read_layout();
    read_batch();
    read_tensor_groups();
    read_stages();
    read_precision();
    read_optimizer();
    read_data_parallel();
    read_launch();
    judge_keys(draft_, in_, options_, {nanotron::kRead, nanotron::kHarmless, nanotron::kRules});
    say_left_out(draft_, options_);
    return draft_.finish(in_);
  }

 private:
  static constexpr const char* kProfile = "nanotron";
  static constexpr std::int64_t kMostOfAnything = 100'000'000;

  std::string stem() const { return std::filesystem::path(name_).stem().string(); }
  bool is_own() const { return options_.framework.empty() || options_.framework == kProfile; }

  void set_framework() {
    draft_.set_text("training.framework", is_own() ? kProfile : options_.framework);
    if (is_own())
      draft_.assume(
          "code of December 2024, which profile nanotron was read from and measured with");
  }
  /// Switches of nanotron's own kernels; another profile has none of them.
  void set_switch(const std::string& field, const std::string& value) {
    if (is_own()) draft_.set_in_framework(field, value);
  }

  /// What nanotron itself demands.
  std::int64_t needed(const std::string& key) {
    if (!in_.text(key)) in_.refuse(key, "is missing", "write it: nanotron does not start without");
    return std::min(in_.integer(key).value_or(1), kMostOfAnything);
  }
  std::string needed_word(const std::string& key) {
    const auto given = in_.text(key);
    if (!given) in_.refuse(key, "is missing", "write it: nanotron does not start without");
    return lower_case(given.value_or(""));
  }
  bool is_on(const std::string& key) {
    return lower_case(in_.text(key).value_or("false")) == "true";
  }
  std::int64_t degree(const std::string& key) { return std::min(needed(key), kMostGpus); }

  /// What `key` says, or nanotron's default, which is told.
  std::string word_or(const std::string& key, const std::string& usual) {
    const auto given = in_.text(key);
    if (!given) draft_.assume(key + " " + usual + ", nanotron's default");
    return lower_case(given.value_or(usual));
  }
  std::int64_t integer_or(const std::string& key, std::int64_t usual) {
    if (!in_.text(key)) draft_.assume(key + " " + std::to_string(usual) + ", nanotron's default");
    return std::min(in_.integer(key).value_or(usual), kMostGpus);
  }

  void read_model() {
    const std::string of = "model.model_config.";
    draft_.set_text("model.name", stem());
    draft_.set("model.family", "llama");
    draft_.set("model.layers", needed(of + "num_hidden_layers"));
    draft_.set("model.hidden", needed(of + "hidden_size"));
    const std::int64_t heads = needed(of + "num_attention_heads");
    draft_.set("model.heads", heads);
    draft_.set("model.kv_heads", in_.integer(of + "num_key_value_heads").value_or(heads));
    draft_.set("model.ffn", needed(of + "intermediate_size"));
    draft_.set("model.vocab", needed(of + "vocab_size"));
    draft_.set("model.hidden_dropout", "0");
    draft_.set("model.attention_dropout", "0");
    const bool tied = word_or(of + "tie_word_embeddings", "false") == "true";
    draft_.set("model.tied_embeddings", tied ? "true" : "false");
    read_activation(of + "hidden_act");
    in_.text(of + "is_llama_config");
  }

  /// The gate is there whatever the activation (nn/activations.py, GLUActivation).
  void read_activation(const std::string& key) {
    const std::string name = word_or(key, "silu");
    draft_.set("model.activation", name == "gelu" ? "geglu" : "swiglu");
    if (name != "silu" && name != "gelu")
      leave_out_value(draft_, in_, options_, key, "is not simulated", "known: silu, gelu");
  }

  void read_layout() {
    replicas_ = degree("parallelism.dp");
    tensor_ = degree("parallelism.tp");
    stages_ = degree("parallelism.pp");
    const std::int64_t gpus =
        std::min(std::min(replicas_ * tensor_, kMostGpus) * stages_, kMostGpus);
    if (options_.gpus > 0 && options_.gpus != gpus)
      in_.refuse("parallelism.dp",
                 "* tp * pp takes " + std::to_string(gpus) + " GPUs, and the job has " +
                     std::to_string(options_.gpus) + ": nanotron does not start",
                 "correct the file, or --gpus");
    draft_.set("parallelism.data", replicas_);
    if (tensor_ > 1) draft_.set("parallelism.tensor", tensor_);
    if (stages_ > 1) draft_.set("parallelism.pipeline", stages_);
    set_cluster(draft_, options_, gpus);
  }

  void read_batch() {
    const std::int64_t length = needed("tokens.sequence_length");
    const std::int64_t micro = degree("tokens.micro_batch_size");
    const std::int64_t turns = degree("tokens.batch_accumulation_per_replica");
    const std::int64_t of_replica = std::min(micro * turns, kMostGpus);
    const auto or_else = [](std::int64_t option, std::int64_t value) {
      return option > 0 ? option : value;
    };
    draft_.set("training.sequence_length", or_else(options_.sequence_length, length));
    draft_.set("training.micro_batch", or_else(options_.micro_batch, micro));
    draft_.set("training.global_batch",
               or_else(options_.global_batch, std::min(of_replica * replicas_, kMostGpus)));
  }

  /// parallel/tensor_parallel/functional.py. What runs synchronously is left to autograd, which
  /// keeps what forward gathered.
  void read_tensor_groups() {
    const std::string kMode = "parallelism.tp_mode";
    const std::string kAsync = "parallelism.tp_linear_async_communication";
    const std::string kAgain = "parallelism.tp_recompute_allgather";
    const bool gathers_again = lower_case(in_.text(kAgain).value_or("true")) == "true";
    if (tensor_ == 1) return ignore_tensor_groups({kMode, kAsync});
    const std::string mode = word_or(kMode, "all_reduce");
    const bool scatters = mode == "reduce_scatter";
    const bool beside = word_or(kAsync, "false") == "true";
    if (!scatters && mode != "all_reduce")
      in_.refuse(kMode, "is " + mode, "known: ALL_REDUCE, REDUCE_SCATTER");
    draft_.set("parallelism.sequence_parallel", scatters ? "true" : "false");
    if (!beside) set_switch("overlap_tensor_gradients", "false");
    if (!scatters) return;
    if (!beside) set_switch("own_rows_first", "false");
    if (!beside || !gathers_again) set_switch("keeps_gathered", "true");
  }

  void ignore_tensor_groups(std::initializer_list<std::string> keys) {
    for (const std::string& key : keys)
      if (const auto value = in_.text(key))
        draft_.ignore(key + " = " + *value + ": there is no tensor group");
  }

  /// Without its own word all forward passes run first (config/parallelism_config.py).
  void read_stages() {
    const std::string kEngine = "parallelism.pp_engine";
    if (is_on("parallelism.recompute_layer")) draft_.set("training.recompute", "full");
    if (stages_ == 1) {
      if (const auto engine = in_.text(kEngine))
        draft_.ignore(kEngine + " = " + *engine + ": there is one stage");
      return;
    }
    const std::string engine = word_or(kEngine, "afab");
    if (engine != "1f1b" && engine != "afab")
      in_.refuse(kEngine, "is " + engine, "known: 1f1b, afab");
    draft_.set("training.schedule", engine == "afab" ? "gpipe" : "one_f_one_b");
  }

  void read_precision() {
    const std::string kType = "model.dtype";
    const std::string type = word_or(kType, "bfloat16");
    const bool half = type == "float16";
    draft_.set("training.precision", half ? "fp16" : "bf16");
    if (type != "bfloat16" && !half)
      leave_out_value(draft_, in_, options_, kType,
                      "is not simulated: nanotron's attention is FlashAttention, in 16 bits alone",
                      "known: bfloat16, float16");
    const std::string kSums = "optimizer.accumulate_grad_in_fp32";
    if (needed_word(kSums) == "false")
      leave_out_value(draft_, in_, options_, kSums,
                      "keeps gradients and states in 16 bits without master weights, which is not "
                      "simulated",
                      "known: true");
    const auto multiple = in_.integer("model.make_vocab_size_divisible_by");
    if (multiple.value_or(1) > 1)
      set_switch("vocabulary_multiple", std::to_string(std::min(*multiple, std::int64_t{65'536})));
  }

  void read_optimizer() {
    const std::string kName = "optimizer.optimizer_factory.name";
    const std::string kFused = "optimizer.optimizer_factory.torch_adam_is_fused";
    const std::string name = needed_word(kName);
    if (!name.empty() && name != "adamw")
      leave_out_value(draft_, in_, options_, kName, "is not simulated", "known: adamW");
    const bool is_adam = name == "adamw";
    if (is_adam && needed_word(kFused) == "false") set_switch("fused_optimizer", "false");
    const bool clips = in_.number("optimizer.clip_grad").has_value();
    draft_.set("training.clip_gradients", clips ? "true" : "false");
  }

  /// Without ZeRO DistributedDataParallel counts 16-bit gradients, whose sums are fp32.
  void read_data_parallel() {
    const std::string kStage = "optimizer.zero_stage";
    const std::string kBucket = "model.ddp_bucket_cap_mb";
    const std::int64_t stage = in_.integer(kStage, 0).value_or(0);
    if (!in_.text(kStage)) in_.refuse(kStage, "is missing", "write 0 or 1");
    if (stage > 1) in_.refuse(kStage, "is " + std::to_string(stage), "nanotron has 0 and 1");
    draft_.set("training.data_parallel.sharding", stage == 1 ? "optimizer" : "none");
    const bool sums_buckets = stage == 0 && replicas_ > 1;
    if (!sums_buckets) {
      if (const auto size = in_.text(kBucket))
        draft_.ignore(kBucket + " = " + *size + ": nothing is summed bucket by bucket");
      return;
    }
    constexpr std::int64_t kUsual = 25;
    const std::int64_t bytes = integer_or(kBucket, kUsual) * 2 << 20;
    draft_.set("training.data_parallel.bucket", std::to_string(bytes) + " B");
  }

  /// What stands around the file: variables, checks between passes.
  void read_launch() {
    const std::string kChecks = "general.ignore_sanity_checks";
    if (lower_case(in_.text(kChecks).value_or("true")) == "false")
      draft_.approximate(kChecks +
                         " = false: comparisons of weights and gradients between ranks, in every "
                         "step, are left out");
    const auto queues = in_.integer(kConnections);
    if (queues.value_or(1) > 1)
      set_switch("cuda_device_max_connections",
                 std::to_string(std::min(*queues, std::int64_t{32})));
    if (!queues && is_own())
      draft_.assume("CUDA_DEVICE_MAX_CONNECTIONS=1, which nanotron's examples set");
  }

  ForeignFields in_;
  const JobOptions& options_;
  std::string name_;
  ScenarioDraft draft_;
  std::int64_t tensor_ = 1, stages_ = 1, replicas_ = 1;
};

}  // namespace

bool holds_nanotron_job(const YamlNode& tree) {
  const auto has = [&](const char* key) { return tree.find(key) != nullptr; };
  const bool is_own = has("tokens") || has("data_stages") || has("optimizer");
  return is_own && has("parallelism") && !has("training");
}

ImportedJob import_nanotron(const std::string& text, const std::string& name,
                            const JobOptions& options) {
  if (!holds_nanotron_job(foreign_tree(text, name)))
    throw InputError({name, "is no file of nanotron",
                      "it has parallelism, and optimizer, tokens or data_stages beside it"});
  return import_nanotron_fields(read_fields(text, name), name, options);
}

ImportedJob import_nanotron_fields(ForeignFields fields, const std::string& name,
                                   const JobOptions& options) {
  return NanotronJob(std::move(fields), options, name).read();
}

}  // namespace tessera
