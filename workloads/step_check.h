#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/input_error.h"
#include "workloads/model_graph.h"

namespace tessera {

/// "1, 2, 4": the divisors of `number` up to 64.
std::string divisors_of(std::int64_t number);

/// Finds everything that makes a step of a transformer impossible.
class StepCheck {
 public:
  StepCheck(const ModelSpec& model, const StepOptions& step) : model_(model), step_(step) {}

  std::vector<Problem> run() &&;

 private:
  void fail(std::string where, std::string what, std::string hint);
  void require_positive(const std::string& field, std::int64_t value);
  void require_divisor(const std::string& field, std::int64_t divisor, std::string_view of,
                       std::int64_t number);

  void check_dimensions();
  void check_batch();
  void check_sequence();
  void check_precision();
  void check_data_parallel();
  void check_aligned_parameters();
  void check_activation();
  void check_megatron();
  void check_unsplit();
  // feature_check.cpp
  void check_features();
  void check_packed_attention();
  void check_adapters();
  // recipe_check.cpp
  void check_pattern();
  void check_recipe();
  void check_offload();
  void check_dispatcher();
  void check_megatron_alone();
  void check_expert_loop();
  void check_hugging_face();
  // share_check.cpp
  void check_tensor_share();
  void check_sequence_plan();
  void check_gathers();
  void check_stages();
  void check_parts();
  // layout_check.cpp
  void check_uneven_batches();
  void check_schedule();
  void check_schedule_of(std::int64_t micro_batches);
  void check_split();
  void check_cost_split();
  void check_experts();
  void check_context();

  const ModelSpec& model_;
  const StepOptions& step_;
  std::vector<Problem> problems_;
};

}  // namespace tessera
