// Megatron-LM's arguments, by the names of megatron/training/arguments.py.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/import/job/foreign_fields.h"
#include "sim/import/job/imported_job.h"
#include "sim/import/job/scenario_draft.h"
#include "sim/import/job/shell_words.h"

namespace tessera {
namespace {

bool is_option(const ShellWord& word) {
  return word.text.size() > 2 && word.text.starts_with("--");
}

/// What stands between the options of torchrun and its own.
bool is_program(const ShellWord& word) {
  return word.text.ends_with(".py");
}

/// The command with most options: what starts the training.
std::vector<ShellWord> launch_of(const ShellScript& script, const std::string& name) {
  std::vector<ShellWord> launch;
  std::ptrdiff_t most = 0;
  for (const std::vector<ShellWord>& command : script.commands) {
    const auto options = std::count_if(command.begin(), command.end(), is_option);
    if (options <= most) continue;
    most = options;
    launch = command;
  }
  if (launch.empty())
    throw InputError({name, "holds no command with options such as --num-layers",
                      "give a launch script of Megatron-LM, or its arguments"});
  return launch;
}

/// "--name value", "--name=value", "--switch"; options of torchrun are among them.
ForeignFields arguments_of(const std::vector<ShellWord>& words, const std::string& file) {
  ForeignFields arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_option(words[i])) continue;
    std::string name = words[i].text.substr(2);
    std::string value;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const int line = words[i].line;
    while (i + 1 < words.size() && !is_option(words[i + 1]) && !is_program(words[i + 1]))
      value += (value.empty() ? "" : " ") + words[++i].text;
    arguments.add("--" + name, {value, file + ":" + std::to_string(line)});
  }
  return arguments;
}

/// Reads arguments into a scenario; one method per part of it.
class MegatronJob {
 public:
  MegatronJob(ForeignFields arguments, const ShellVariables& variables, const JobOptions& options)
      : in_(std::move(arguments)), variables_(variables), options_(options) {}

  ImportedJob read(const std::string& title) {
    draft_.set_text("name", title);
    read_model(title);
    read_training();
    read_parallelism();
    read_data_parallel();
    return draft_.finish(in_);
  }

 private:
  std::int64_t needed(const std::string& name) {
    if (!in_.has(name)) in_.refuse(name, "is missing", "add it to the arguments");
    return in_.integer(name).value_or(1);
  }

  void read_model(const std::string& title) {
    const std::string norm = in_.text("--normalization").value_or("LayerNorm");
    is_llama_ = norm == "RMSNorm";
    draft_.set_text("model.name", title);
    const bool alibi = in_.text("--position-embedding-type").value_or("") == "alibi";
    const bool embedding_norm = in_.flag("--embed-layernorm");
    draft_.set("model.family", is_llama_ ? "llama" : alibi ? "bloom" : "gpt2");
    if (alibi && !is_llama_ && !embedding_norm)
      draft_.assume("a norm behind the embedding, as family bloom has it");
    if (embedding_norm && (is_llama_ || !alibi))
      draft_.assume("the norm behind the embedding is left out: only family bloom has it");
    layers_ = needed("--num-layers");
    draft_.set("model.layers", layers_);
    const std::int64_t hidden = needed("--hidden-size");
    draft_.set("model.hidden", hidden);
    const std::int64_t heads = needed("--num-attention-heads");
    draft_.set("model.heads", heads);
    if (in_.flag("--group-query-attention"))
      draft_.set("model.kv_heads", in_.integer("--num-query-groups").value_or(1));
    if (const auto size = in_.integer("--kv-channels")) draft_.set("model.head_dim", *size);
    if (in_.flag("--qk-layernorm")) draft_.set("model.qk_norm", "true");
    if (in_.flag("--add-qkv-bias") && is_llama_) draft_.set("model.qkv_bias", "true");
    read_feed_forward(hidden);
    read_positions();
    read_vocabulary();
    draft_.set("model.hidden_dropout", in_.text("--hidden-dropout").value_or("0.1"));
    draft_.set("model.attention_dropout", in_.text("--attention-dropout").value_or("0.1"));
    const bool untied = in_.flag("--untie-embeddings-and-output-weights");
    draft_.set("model.tied_embeddings", untied ? "false" : "true");
  }

  void read_feed_forward(std::int64_t hidden) {
    const bool gated = in_.flag("--swiglu");
    // Megatron's default of a gated feed-forward: two thirds of 4 h, down to a multiple of 64.
    const std::int64_t usual = gated ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
    const auto experts_ffn = in_.integer("--moe-ffn-hidden-size");
    const auto ffn = in_.integer("--ffn-hidden-size");
    draft_.set("model.ffn",
               experts_ffn ? *experts_ffn : ffn.value_or(std::max<std::int64_t>(usual, 1)));
    draft_.set("model.activation", gated ? "swiglu" : "gelu_new");
    if (in_.flag("--squared-relu")) {
      draft_.set("model.activation", "relu");
      draft_.assume("squared ReLU costs what ReLU does");
    }
    if (!is_llama_ || in_.flag("--disable-bias-linear")) return;
    draft_.assume("linear layers without biases, as family llama has them");
  }

  void read_positions() {
    const std::string kind = in_.text("--position-embedding-type").value_or("learned_absolute");
    const bool rotary = kind == "rope" || in_.flag("--use-rotary-position-embeddings");
    const auto positions = in_.integer("--max-position-embeddings");
    if (is_llama_) {
      if (!rotary) draft_.assume("rotary positions, as family llama has them");
    } else if (kind == "alibi") {
      draft_.set("model.max_positions", 0);
    } else if (rotary) {
      draft_.set("model.max_positions", 0);
      draft_.assume("rotary positions cost nothing in family gpt2");
    } else if (positions) {
      draft_.set("model.max_positions", *positions);
    }
    if (const auto experts = in_.integer("--num-experts")) {
      has_experts_ = true;
      draft_.set("model.experts", *experts);
      draft_.set("model.experts_per_token", in_.integer("--moe-router-topk").value_or(2));
    }
  }

  void read_vocabulary() {
    const auto size = in_.integer("--vocab-size");
    const std::string tokenizer = in_.text("--tokenizer-type").value_or("");
    const bool is_gpt2 = tokenizer.empty() || tokenizer.starts_with("GPT2");
    const std::int64_t usual = is_gpt2 ? 50257 : is_llama_ ? 32000 : 50257;
    draft_.set("model.vocab", size.value_or(usual));
    if (size) return;
    draft_.assume("vocabulary of " + std::to_string(usual) + " tokens: the tokenizer " +
                  (tokenizer.empty() ? "" : tokenizer + " ") + "has it, not the arguments");
  }

  void read_training() {
    const bool is_local = in_.text("--transformer-impl").value_or("") == "local";
    const std::string framework = is_local ? "megatron-local" : "megatron";
    draft_.set_text("training.framework",
                    options_.framework.empty() ? framework : options_.framework);
    if (!is_local && options_.framework.empty())
      draft_.assume("framework megatron: layers of Transformer Engine");
    draft_.set_text("training.precision", precision());
    if (options_.sequence_length > 0) {
      draft_.set("training.sequence_length", options_.sequence_length);
    } else {
      draft_.set("training.sequence_length", needed("--seq-length"));
    }
    read_recomputation();
    if (in_.text("--optimizer").value_or("adam") == "sgd") draft_.set("training.optimizer", "sgd");
    if (in_.number("--clip-grad").value_or(1.0) <= 0)
      draft_.set("training.clip_gradients", "false");
    if (const auto factor = in_.text("--moe-expert-capacity-factor"))
      draft_.set("training.expert_capacity_factor", *factor);
  }

  std::string precision() {
    const bool half = in_.flag("--fp16");
    const bool bfloat = in_.flag("--bf16");
    if (in_.text("--fp8-format") || in_.flag("--fp8-hybrid") || in_.flag("--fp8-e4m3"))
      return "fp8";
    return half ? "fp16" : bfloat ? "bf16" : "fp32";
  }

  void read_recomputation() {
    const bool some = in_.flag("--recompute-activations");
    const std::string how = in_.text("--recompute-granularity").value_or(some ? "selective" : "");
    if (how.empty()) return;
    draft_.set("training.recompute", how == "full" ? "full" : "selective");
    const auto layers = in_.integer("--recompute-num-layers");
    if (how == "full" && layers && in_.text("--recompute-method").value_or("") == "block")
      draft_.assume("all layers run again, not only " + std::to_string(*layers) + " per stage");
  }

  void read_parallelism() {
    const std::int64_t tensor = in_.integer("--tensor-model-parallel-size").value_or(1);
    const std::int64_t pipeline = in_.integer("--pipeline-model-parallel-size").value_or(1);
    const std::int64_t context = in_.integer("--context-parallel-size").value_or(1);
    draft_.set("parallelism.tensor", tensor);
    draft_.set("parallelism.pipeline", pipeline);
    if (in_.flag("--sequence-parallel")) draft_.set("parallelism.sequence_parallel", "true");
    if (in_.flag("--tp-comm-overlap") && tensor > 1)
      draft_.set("training.framework.overlap_tensor_products", "true");
    if (context > 1) read_context(context);
    if (const auto expert = in_.integer("--expert-model-parallel-size"))
      draft_.set("parallelism.expert", *expert);
    const auto parts = in_.integer("--expert-tensor-parallel-size");
    if (parts && has_experts_) draft_.set("parallelism.expert_tensor", *parts);
    read_stages(pipeline);
    read_batch(tensor, pipeline, context);
  }

  void read_context(std::int64_t context) {
    draft_.set("parallelism.context", context);
    const std::string how = in_.text("--cp-comm-type").value_or("p2p");
    draft_.set("parallelism.context_attention", how == "a2a"          ? "ulysses"
                                                : how == "all_gather" ? "all_gather"
                                                                      : "ring");
  }

  void read_stages(std::int64_t pipeline) {
    auto chunks = in_.integer("--num-virtual-stages-per-pipeline-rank");
    if (const auto layers = in_.integer("--num-layers-per-virtual-pipeline-stage"))
      chunks = std::max<std::int64_t>(1, layers_ / pipeline / *layers);
    if (chunks && *chunks > 1) draft_.set("parallelism.virtual_stages", *chunks);
    if (const auto layers = in_.integer("--decoder-first-pipeline-num-layers"))
      draft_.set("parallelism.first_stage_layers", *layers);
    if (const auto layers = in_.integer("--decoder-last-pipeline-num-layers"))
      draft_.set("parallelism.last_stage_layers", *layers);
    if (in_.flag("--account-for-embedding-in-pipeline-split"))
      draft_.set("parallelism.embedding_as_layer", "true");
    if (in_.flag("--account-for-loss-in-pipeline-split"))
      draft_.set("parallelism.head_as_layer", "true");
  }

  void read_batch(std::int64_t tensor, std::int64_t pipeline, std::int64_t context) {
    const std::int64_t micro =
        options_.micro_batch > 0 ? options_.micro_batch : needed("--micro-batch-size");
    // More would not fit into 64 bits, and no job has them.
    const auto within = [](std::int64_t size) { return std::min<std::int64_t>(size, 1'000'000); };
    const std::int64_t replica = within(tensor) * within(pipeline) * within(context);
    std::int64_t gpus = options_.gpus > 0 ? options_.gpus : gpus_of_launch();
    if (gpus == 0) {
      gpus = replica;
      draft_.assume("one replica on " + std::to_string(gpus) + " GPUs; --gpus gives the number");
    }
    const std::int64_t data = std::max<std::int64_t>(1, gpus / replica);
    replicas_ = data * within(context);
    draft_.set("parallelism.data", data);
    draft_.set("training.micro_batch", micro);
    const auto global = in_.integer("--global-batch-size");
    if (options_.global_batch == 0 && !global)
      draft_.assume("one micro-batch per replica: there is no --global-batch-size");
    draft_.set("training.global_batch", options_.global_batch > 0
                                            ? options_.global_batch
                                            : global.value_or(within(micro) * data));
    set_cluster(draft_, options_, gpus);
  }

  /// From torchrun's options, else from the usual variables; 0: not told.
  std::int64_t gpus_of_launch() {
    const auto given = [this](const std::string& one, const std::string& other) {
      const auto value = in_.integer("--" + one);
      return value ? value : in_.integer("--" + other);
    };
    const auto per_node = given("nproc_per_node", "nproc-per-node");
    const auto nodes = given("nnodes", "nnodes");
    if (per_node)
      return std::min<std::int64_t>(*per_node, 1'000'000) *
             std::min<std::int64_t>(nodes.value_or(1), 1'000'000);
    if (const std::int64_t world = variable("WORLD_SIZE")) return world;
    return variable("GPUS_PER_NODE") * std::max<std::int64_t>(1, variable("NNODES"));
  }

  /// A whole number of up to 6 digits, or 0.
  std::int64_t variable(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found == variables_.end() || found->second.size() != 1) return 0;
    const std::string& text = found->second.front();
    const bool is_number = !text.empty() && text.size() <= 6 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::stoll(text) : 0;
  }

  void read_data_parallel() {
    if (in_.flag("--use-distributed-optimizer"))
      draft_.set("training.data_parallel.sharding", "optimizer");
    const auto instances = in_.integer("--num-distributed-optimizer-instances");
    if (instances && *instances > 1)
      draft_.set("training.data_parallel.shard_group",
                 std::max<std::int64_t>(1, replicas_ / *instances));
    if (in_.flag("--overlap-grad-reduce"))
      draft_.set("training.data_parallel.overlap_gradients", "true");
    if (in_.flag("--no-align-grad-reduce"))
      draft_.set("training.data_parallel.align_gradients", "false");
    if (in_.flag("--overlap-param-gather"))
      draft_.set("training.data_parallel.overlap_parameters", "true");
    if (in_.flag("--align-param-gather"))
      draft_.set("training.data_parallel.align_parameters", "true");
  }

  ForeignFields in_;
  const ShellVariables& variables_;
  const JobOptions& options_;
  ScenarioDraft draft_;
  bool is_llama_ = false;
  bool has_experts_ = false;
  std::int64_t replicas_ = 1;
  std::int64_t layers_ = 1;
};

}  // namespace

ImportedJob import_megatron(const std::string& text, const std::string& name,
                            const JobOptions& options) {
  ShellVariables variables;
  for (const auto& [variable, value] : options.variables) variables[variable] = {value};
  const ShellScript script = read_shell_script(text, name, std::move(variables));
  ForeignFields arguments = arguments_of(launch_of(script, name), name);
  const std::string title = std::filesystem::path(name).stem().string();
  return MegatronJob(std::move(arguments), script.variables, options).read(title);
}

}  // namespace tessera
