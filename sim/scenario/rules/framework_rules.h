#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/input_error.h"
#include "sim/scenario/scenario.h"

namespace tessera {

/// What a framework's modules cannot run of a transformer whose fields agree.
class FrameworkRules {
 public:
  FrameworkRules(const ModelSpec& model, const StepOptions& step) : model_(model), step_(step) {}

  std::vector<Problem> run() &&;

 private:
  void fail(std::string where, std::string what, std::string hint);
  void require_positive(const std::string& field, std::int64_t value);
  void require_divisor(const std::string& field, std::int64_t divisor, std::string_view of,
                       std::int64_t number);

  void check_switches();
  void check_modules();
  void check_family();
  void check_precision();
  void check_data_parallel();
  void check_aligned_parameters();
  void check_activation();
  void check_megatron();
  void check_unsplit();
  // feature_rules.cpp
  void check_features();
  void check_indexer();
  void check_packed_attention();
  void check_adapters();
  void check_adapters_of_peft();
  void check_base_weights();
  void check_gathered_adapters();
  void check_adapted_modules();
  // recipe_rules.cpp
  void check_pattern();
  void check_delta_nets();
  void check_kimi_delta();
  void check_scans(bool beside_mamba_2);
  void check_short_convolutions();
  void refuse_beside(const std::string& layers);
  void check_plain_branches();
  void check_recipe();
  void check_recompute();
  void check_fp8_parameters();
  void check_documents();
  void check_offload();
  void check_dispatcher();
  void check_megatron_alone();
  void check_expert_loop();
  void check_hugging_face();
  // share_rules.cpp
  void check_tensor_share();
  void check_fully_sharded();
  void check_sequence_plan();
  void check_gathers();
  void check_stages();
  void check_parts();
  // schedule_rules.cpp
  void check_schedule();
  void check_schedule_of(std::int64_t micro_batches);
  void check_v();
  void check_split();
  void check_cost_split();
  void check_experts();
  void check_context();

  const ModelSpec& model_;
  const StepOptions& step_;
  std::vector<Problem> problems_;
};

/// Of every model.
void check_optimizer(const Scenario& scenario, std::vector<Problem>& problems);

}  // namespace tessera
