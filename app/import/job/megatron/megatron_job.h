#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/import/job/megatron/megatron_launch.h"
#include "app/import/job/scenario_draft.h"

namespace tessera {

/// Reads the arguments of one launch into a scenario; a file per part of it.
class MegatronJob {
 public:
  MegatronJob(MegatronLaunch launch, const ShellScript& script, const JobOptions& options)
      : launch_(std::move(launch)), in_(launch_.arguments), script_(script), options_(options) {}

  ImportedJob read(const std::string& title);

 private:
  // megatron_job.cpp
  void read_framework();
  void read_environment();
  void read_attention();
  void set_framework();
  void sort_the_rest();

  // megatron_deepspeed.cpp
  void read_deepspeed();
  void read_deepspeed_file(const std::string& content, const std::string& title);
  std::int64_t read_deepspeed_stage(ForeignFields& file);
  void hold_batches(ForeignFields& file);
  void hold_precision(ForeignFields& file);
  void read_engine(ForeignFields& file, std::int64_t stage);

  // megatron_model.cpp
  void read_model(const std::string& title);
  void read_dimensions();
  void read_feed_forward();
  void check_llama();
  void read_biases();
  void check_gpt();
  void read_positions();
  void set_position_kind();
  void read_experts();
  void read_balance();
  void read_dropout(const char* argument, const char* field);
  // megatron_features.cpp
  void read_features();
  void read_latent_attention();
  void read_expert_features();
  void read_loss_fusion();
  void read_graphs();
  void note_left_out();
  // megatron_variants.cpp
  void read_attention_variant();
  void read_delta_layers(const std::string& variant);
  void read_indexer();
  // megatron_patterns.cpp
  void read_hybrid();
  void read_attention_pattern();
  void read_window(std::string& letters);
  void read_unturned_layers(std::string& letters);
  /// E or - for each layer; empty where --moe-layer-freq is no list for the layers.
  std::string expert_letters();
  void read_expert_layers();
  void read_vocabulary();
  std::int64_t vocabulary();
  std::int64_t vocabulary_of_tokenizer();

  // megatron_training.cpp
  void read_training();
  void read_precision();
  void read_bf16_layers();
  void read_gradient_formats();
  void read_muon(bool dealt);
  void read_optimizer();
  void read_recomputation();
  void read_selective();
  void read_full(const std::string& method, std::int64_t layers);
  void read_data_parallel();
  void read_sharding();
  void read_overlap();
  void read_buckets();

  // megatron_layout.cpp
  void read_parallelism();
  void read_context();
  void read_expert_layout();
  void read_flexible_dispatcher(std::int64_t expert);
  void read_stages();
  void read_virtual_stages();
  void read_partition_method();
  void read_layout_text(const std::string& text);
  std::int64_t read_gpus(std::int64_t replica);
  void read_batch();
  void note_mask();
  void set_cluster_of_launch(std::int64_t gpus);

  /// A required number; a problem where it is missing.
  std::int64_t needed(const char* name);
  /// A whole number; one that only a run of the script tells is a problem that says what to do.
  std::optional<std::int64_t> integer(const char* name, std::int64_t least = 1);
  std::optional<std::string> text(const char* name);
  /// A switch; a problem where something else than yes or no stands behind it.
  bool flag(const char* name);
  bool given(const char* name) const { return in_.has(name); }
  /// The step depends on `name`, and the scenario cannot say it.
  void cannot(const char* name, const std::string& what, const std::string& hint = "");
  void problem(const char* name, const std::string& what, const std::string& hint) {
    if (given(name)) return in_.refuse(name, what, hint);
    in_.add_problem({launch_.where, std::string(name) + " " + what, hint});
  }
  void set_profile(const char* field, const std::string& value) {
    profile_.emplace_back(field, value);
  }
  /// So many layers of the job as layers of the model.
  std::int64_t layers_of_model(std::int64_t layers) const { return (paired_ ? 2 : 1) * layers; }
  /// Layers of a pipeline stage or a model chunk: of the one that has the most.
  std::int64_t layers_of_part();

  MegatronLaunch launch_;
  ForeignFields& in_;
  const ShellScript& script_;
  const JobOptions& options_;
  ScenarioDraft draft_;
  std::string framework_;                                     ///< profile
  std::vector<std::pair<std::string, std::string>> profile_;  ///< its fields that the job changes
  std::string graph_modules_;  ///< "attn, moe_router"; empty: whole layers
  bool deepspeed_ = false;
  bool legacy_ = false;  ///< arguments of 2021 and 2022
  bool is_llama_ = false;
  bool hybrid_ = false;    ///< layers of one branch each
  bool paired_ = false;    ///< a layer of the job is two of the model: a mixer, a feed-forward
  std::string positions_;  ///< learned_absolute, rope, alibi, none
  bool gated_ = false;
  bool has_experts_ = false;
  bool half_ = false;  ///< fp16
  bool bfloat_ = false;
  std::int64_t layers_ = 1;
  std::int64_t window_ = 0;  ///< tokens, itself included; 0: none
  std::int64_t hidden_ = 1;
  std::int64_t tensor_ = 1;
  std::int64_t pipeline_ = 1;
  std::int64_t chunks_ = 1;        ///< of a stage
  std::int64_t most_of_part_ = 0;  ///< layers that a layout gives one chunk; 0: there is no layout
  std::int64_t context_ = 1;
  std::int64_t replicas_ = 1;  ///< data * context
  std::int64_t sequence_ = 1;
  std::int64_t micro_batch_ = 1;
};

}  // namespace tessera
