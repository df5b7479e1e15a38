#include "sim/report/time_category.h"

#include <numeric>

namespace tessera {
namespace {

constexpr std::array<std::string_view, kTimeCategoryCount> kCategoryLabels{
    "forward",           "loss",           "backward",     "gradient_reduction",
    "optimizer",         "exposed_tensor", "exposed_data", "exposed_pipeline",
    "exposed_embedding", "exposed_world",  "exposed_swap", "exposed_context",
    "exposed_expert",    "contention",     "bubble",       "host",
    "other_idle"};

}  // namespace

std::string_view label_of(TimeCategory category) {
  return kCategoryLabels[static_cast<std::size_t>(category)];
}

TimeCategory compute_category(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return TimeCategory::forward;
    case Phase::loss:
      return TimeCategory::loss;
    case Phase::backward:
      return TimeCategory::backward;
    case Phase::gradient_reduction:
      return TimeCategory::gradient_reduction;
    case Phase::optimizer:
      return TimeCategory::optimizer;
  }
  return TimeCategory::other_idle;
}

TimeCategory exposed_category(GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return TimeCategory::exposed_tensor;
    case GroupKind::data:
    case GroupKind::shard:
    case GroupKind::replica:
    case GroupKind::expert_data:
      return TimeCategory::exposed_data;
    case GroupKind::pipeline:
      return TimeCategory::exposed_pipeline;
    case GroupKind::embedding:
      return TimeCategory::exposed_embedding;
    case GroupKind::world:
    case GroupKind::listed:
      return TimeCategory::exposed_world;
    case GroupKind::context:
      return TimeCategory::exposed_context;
    case GroupKind::expert:
    case GroupKind::expert_tensor:
      return TimeCategory::exposed_expert;
  }
  return TimeCategory::other_idle;
}

Seconds TimeBreakdown::total() const {
  return std::accumulate(time_.begin(), time_.end(), Seconds());
}

Seconds TimeBreakdown::exposed_communication() const {
  Seconds sum;
  for (const GroupKind group :
       {GroupKind::tensor, GroupKind::data, GroupKind::pipeline, GroupKind::embedding,
        GroupKind::world, GroupKind::context, GroupKind::expert}) {
    sum += (*this)[exposed_category(group)];
  }
  return sum;
}

std::array<TimeCategory, kTimeCategoryCount> time_categories() {
  std::array<TimeCategory, kTimeCategoryCount> categories{};
  for (std::size_t i = 0; i < categories.size(); ++i) {
    categories[i] = static_cast<TimeCategory>(i);
  }
  return categories;
}

}  // namespace tessera
