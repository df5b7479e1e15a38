#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "hw/units/quantity.h"
#include "workloads/program/program.h"

namespace tessera {

/// What a GPU's compute stream does at an instant of the step. Every instant belongs to one
/// category, so the categories of a rank add up to the step time.
enum class TimeCategory : std::uint8_t {
  forward,  ///< kernels run, by phase of the step
  loss,
  backward,
  gradient_reduction,
  optimizer,
  exposed_tensor,  ///< no kernel runs, communication holds it up, by group
  exposed_data,
  exposed_pipeline,
  exposed_embedding,
  exposed_world,
  exposed_swap,  ///< copies to and from host memory
  exposed_context,
  exposed_expert,
  contention,  ///< what collectives beside the kernels, which share the GPU, add to their time
  bubble,      ///< no kernel runs because other pipeline stages are still at work
  host,        ///< no kernel runs because the host has not launched it yet
  other_idle,  ///< the rank is done, replicas of it are not
};
constexpr int kTimeCategoryCount = 17;

std::string_view label_of(TimeCategory category);
TimeCategory compute_category(Phase phase);
TimeCategory exposed_category(GroupKind group);

/// Time per category.
class TimeBreakdown {
 public:
  Seconds& operator[](TimeCategory category) { return time_[static_cast<std::size_t>(category)]; }
  Seconds operator[](TimeCategory category) const {
    return time_[static_cast<std::size_t>(category)];
  }
  Seconds total() const;
  /// Sum over the exposed_* categories of groups of GPUs.
  Seconds exposed_communication() const;
  /// Waits for copies between GPU and host memory, which are no communication.
  Seconds exposed_copies() const { return (*this)[TimeCategory::exposed_swap]; }

 private:
  std::array<Seconds, kTimeCategoryCount> time_{};
};

/// All categories in the order in which they are printed.
std::array<TimeCategory, kTimeCategoryCount> time_categories();

}  // namespace tessera
