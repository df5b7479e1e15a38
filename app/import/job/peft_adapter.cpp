#include "app/import/job/peft_adapter.h"

#include <algorithm>
#include <array>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/lower_case.h"
#include "sim/config/files/text_file.h"

namespace tessera {
namespace {

using Names = std::set<std::string>;

/// Of weights' values, of files and of how they are loaded: no step depends on them.
constexpr std::array<std::string_view, 21> kHarmless{
    "alpha_pattern",     "arrow_config",   "auto_mapping",   "base_model_name_or_path",
    "corda_config",      "eva_config",     "fan_in_fan_out", "inference_mode",
    "init_lora_weights", "layers_pattern", "loftq_config",   "lora_alpha",
    "megatron_config",   "megatron_core",  "peft_version",   "qalora_group_size",
    "revision",          "runtime_config", "use_rslora",     "ensure_weight_tying",
    "lora_ga_config"};

/// What changes a step, unless it says nothing (null, none, false, 0, an empty list).
struct Unexpressed {
  const char *key, *what;
};
constexpr std::array kUnexpressed{
    Unexpressed{"alora_invocation_tokens", "switches adapters on behind some tokens"},
    Unexpressed{"bias", "trains biases of the model"},
    Unexpressed{"exclude_modules", "takes adapters from some layers"},
    Unexpressed{"layer_replication", "runs layers several times"},
    Unexpressed{"layers_to_transform", "gives some layers alone adapters"},
    Unexpressed{"lora_bias", "gives adapters biases"},
    Unexpressed{"modules_to_save", "trains modules as a whole"},
    Unexpressed{"rank_pattern", "gives layers adapters of different ranks"},
    Unexpressed{"target_parameters", "gives parameters that are no layer's adapters"},
    Unexpressed{"trainable_token_indices", "trains embeddings of some tokens"},
    Unexpressed{"use_qalora", "pools inputs of adapters"}};

/// Names of the linear layers of attention, and of a feed-forward, under which transformers has
/// them; each set is all that a layer has.
const std::array<Names, 5> kAttention{Names{"q_proj", "k_proj", "v_proj", "o_proj"},
                                      Names{"qkv_proj", "o_proj"}, Names{"W_pack", "o_proj"},
                                      Names{"query_key_value", "dense"}, Names{"wqkv", "wo"}};
const std::array<Names, 4> kFeedForward{
    Names{"gate_proj", "up_proj", "down_proj"}, Names{"gate_up_proj", "down_proj"},
    Names{"dense_h_to_4h", "dense_4h_to_h"}, Names{"w1", "w2", "w3"}};

template <std::size_t N>
Names union_of(const std::array<Names, N>& sets) {
  Names all;
  for (const Names& names : sets) all.insert(names.begin(), names.end());
  return all;
}
template <std::size_t N>
bool has_one_of(const Names& given, const std::array<Names, N>& sets) {
  return std::ranges::any_of(
      sets, [&](const Names& names) { return std::ranges::includes(given, names); });
}
bool has_any(const Names& given, const Names& names) {
  return std::ranges::any_of(given, [&](const std::string& name) { return names.contains(name); });
}

std::string listed(const Names& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool says_something(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::sequence) return !node.items.empty();
  if (node.kind == YamlNode::Kind::mapping) return !node.entries.empty();
  const std::string text = lower_case(node.text);
  return !Names{"", "none", "null", "false", "0", "0.0"}.contains(text);
}

/// Whether matching it ends soon: at most three repetitions, none of a group.
bool is_quick(const std::string& pattern) {
  int repetitions = 0;
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    const char before = pattern[i - 1];
    const bool repeats = std::string_view("*+?{").find(pattern[i]) != std::string_view::npos;
    if (!repeats || before == '\\' || before == '(') continue;  // a character; (?: and (?!
    if (before == ')') return false;
    ++repetitions;
  }
  return repetitions <= 3;
}

/// Of `options.adapter`.
YamlNode adapter_tree(const JobOptions& options) {
  const std::string shown = shown_path(options.adapter);
  const auto origin = std::make_shared<Origin>(Origin{shown, options.adapter.parent_path(), true});
  YamlNode tree = parse_yaml(read_text_file(options.adapter), origin);
  if (tree.kind != YamlNode::Kind::mapping)
    throw InputError({shown, "holds no JSON object", "give an adapter_config.json of peft"});
  return tree;
}

class PeftAdapter {
 public:
  PeftAdapter(YamlNode tree, ScenarioDraft& draft, const ModelSpec& model,
              const JobOptions& options)
      : tree_(std::move(tree)),
        in_(fields_of(tree_)),
        draft_(draft),
        model_(model),
        options_(options),
        by_megatron_(options.framework.starts_with("megatron") ||
                     !stands_beside_layers_of_transformers(model)) {}

  void read() {
    read_kind();
    if (!in_.has("r")) draft_.assume("rank 8 of adapters, peft's own");
    draft_.set("training.lora_rank", in_.integer("r").value_or(8));
    read_targets();
    if (stretches()) draft_.set("training.dora", "true");
    read_dropout();
    for (const YamlEntry& entry : tree_.entries) judge(entry);
    in_.finish();
  }

 private:
  void read_kind() {
    const std::string kind = in_.text("peft_type").value_or("LORA");
    if (kind != "LORA")
      in_.refuse("peft_type", "is " + kind + ", which is not simulated", "known: LORA");
    const std::string task = in_.text("task_type").value_or("CAUSAL_LM");
    if (task != "CAUSAL_LM")
      cannot("task_type", "is " + task + ": its head is not simulated, but a language model's",
             "use CAUSAL_LM");
  }

  bool stretches() const {
    const YamlEntry* dora = tree_.find("use_dora");
    return dora != nullptr && says_something(dora->value);
  }

  void read_dropout() {
    const YamlEntry* dropout = tree_.find("lora_dropout");
    if (dropout == nullptr || !says_something(dropout->value)) return;
    if (by_megatron_)
      return cannot("lora_dropout", "drops inputs of adapters, which is not simulated", "use 0");
    const double share = in_.number("lora_dropout").value_or(0);
    if (share < 0 || share >= 1) in_.refuse("lora_dropout", "is no probability", "use 0 to 1");
    draft_.set("training.lora_dropout", in_.text("lora_dropout").value_or("0"));
  }

  /// `key` is in the file.
  void cannot(const std::string& key, const std::string& what, const std::string& hint) {
    if (options_.lenient) return draft_.approximate("adapter: " + key + " " + what);
    in_.add_problem({tree_.find(key)->mark.text(), key + " " + what,
                     hint + (hint.empty() ? "" : ", or ") + "leave it out by --lenient"});
  }

  /// Last parts of the names that a pattern over whole names takes, as peft matches them.
  Names matched(const std::string& pattern) {
    constexpr std::size_t kLongest = 300;
    Names names;
    if (pattern.size() > kLongest || !is_quick(pattern)) {
      in_.refuse("target_modules",
                 "has more than 300 characters or three repetitions, or repeats a group",
                 "write a list of names");
      return names;
    }
    try {
      const std::regex expression(pattern);
      for (const auto& [layer, parts] : {std::pair{"self_attn.", union_of(kAttention)},
                                         std::pair{"mlp.", union_of(kFeedForward)}})
        for (const std::string& part : parts)
          if (std::regex_match("model.layers.0." + std::string(layer) + part, expression))
            names.insert(part);
    } catch (const std::regex_error&) {
      in_.refuse("target_modules", "= " + pattern + " is no regular expression",
                 "write a list of names, or all-linear");
    }
    return names;
  }

  Names targets() {
    const YamlNode& node = tree_.find("target_modules")->value;
    if (node.kind != YamlNode::Kind::sequence) return matched(node.text);
    Names names;
    for (const YamlNode& item : node.items)
      names.insert(item.text.substr(item.text.rfind('.') + 1));
    return names;
  }

  void read_targets() {
    const YamlEntry* entry = tree_.find("target_modules");
    if (entry == nullptr || !says_something(entry->value))
      return in_.refuse("target_modules", "is missing: peft's choice for a model is not known here",
                        "name the layers, or all-linear");
    in_.take("target_modules");
    const bool all = entry->value.text == "all-linear";
    const Names names = all ? Names() : targets();
    if (each_has_its_own(names)) return set_modules(names);
    const bool fed = all || has_any(names, union_of(kFeedForward));
    if (!all) judge_names(names, fed);
    draft_.set("training.lora_targets", fed ? "all" : "attention");
    if (fed && model_.experts > 0)
      cannot("target_modules", "has adapters of routed experts, which are not simulated",
             "name the layers of attention alone");
    if (by_megatron_)
      draft_.approximate("adapters of queries, keys and values are one, and those of gate and up");
  }

  /// Whether the layers are those that transformers' Llama has, so that a list can say them.
  bool each_has_its_own(const Names& names) {
    const bool plain =
        model_.kv_rank == 0 && !model_.attention_gate && model_.layer_pattern.empty();
    const bool fed = has_any(names, kFeedForward.front());
    Names known = kAttention.front();
    known.insert(kFeedForward.front().begin(), kFeedForward.front().end());
    return !names.empty() && std::ranges::includes(known, names) && plain &&
           !(fed && model_.experts > 0) && !(by_megatron_ && stretches());
  }

  void set_modules(const Names& names) {
    YamlNode list;
    list.kind = YamlNode::Kind::sequence;
    for (const std::string& name : names) {
      YamlNode& item = list.items.emplace_back();
      item.kind = YamlNode::Kind::scalar;
      item.text = name;
    }
    draft_.set("training.lora_modules", std::move(list));
  }

  void judge_names(const Names& names, bool fed) {
    Names others = names;
    for (const std::string& name : union_of(kAttention)) others.erase(name);
    for (const std::string& name : union_of(kFeedForward)) others.erase(name);
    const std::string hint = "use all-linear, or all linear layers of attention";
    if (!others.empty())
      return cannot("target_modules",
                    "has " + listed(others) + ", of which adapters are not simulated", hint);
    if (!has_one_of(names, kAttention) || (fed && !has_one_of(names, kFeedForward)))
      cannot("target_modules",
             "has " + (names.empty() ? "no layer" : listed(names) + " alone") +
                 ": adapters of attention, or of attention and feed-forward, are simulated",
             hint);
  }

  void judge(const YamlEntry& entry) {
    if (std::ranges::find(kHarmless, entry.key) != kHarmless.end()) return draft_.ignore(entry.key);
    for (const Unexpressed& one : kUnexpressed) {
      if (entry.key != one.key) continue;
      if (!says_something(entry.value)) return;
      return cannot(entry.key, std::string(one.what) + ", which is not simulated", "");
    }
    static const Names kOwnKeys{"peft_type",      "task_type", "r",
                                "target_modules", "use_dora",  "lora_dropout"};
    if (!kOwnKeys.contains(entry.key))
      cannot(entry.key, "is not known: whether a step depends on it cannot be told",
             "take it out where none does");
  }

  YamlNode tree_;
  ForeignFields in_;
  ScenarioDraft& draft_;
  const ModelSpec& model_;
  const JobOptions& options_;
  bool by_megatron_;
};

}  // namespace

/// Adapters of models with experts are Megatron's.
bool stands_beside_layers_of_transformers(const ModelSpec& model) {
  return model.family == ModelFamily::llama && model.experts == 0;
}

void hold_factors_in_fp32(ScenarioDraft& draft) {
  for (const char* part : {"parameters", "gradients", "reduce", "optimizer_states"})
    draft.set(std::string("training.mixed_precision.") + part, "fp32");
  draft.set("training.mixed_precision.master_weights", "false");
  draft.set("training.base_weights", "in_precision");
  draft.assume(
      "adapters in fp32 beside weights in 16 bits, peft's default (autocast_adapter_dtype)");
}

void set_peft_adapter(ScenarioDraft& draft, const ModelSpec& model, const JobOptions& options) {
  set_peft_adapter(draft, model, adapter_tree(options), options);
}

void set_peft_adapter(ScenarioDraft& draft, const ModelSpec& model, YamlNode adapter,
                      const JobOptions& options) {
  PeftAdapter(std::move(adapter), draft, model, options).read();
}

}  // namespace tessera
