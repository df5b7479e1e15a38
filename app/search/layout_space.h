#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "app/search/layout.h"

namespace tessera {

/// Which layouts a search looks at. An empty list stands for every value that can be legal, of
/// `context` for those that leave every rank 2,048 tokens of a sequence.
struct LayoutSpace {
  int gpus = 0;  ///< that all layouts use; 0: those of the cluster
  std::vector<int> tensor;
  std::vector<int> pipeline;
  std::vector<int> virtual_stages;
  std::vector<int> context;
  std::vector<int> expert;
  std::vector<bool> sequence_parallel;
  std::vector<Sharding> sharding;
  std::vector<PipelineSchedule> schedules;
  std::vector<Recompute> recompute;
  std::vector<std::int64_t> micro_batches;  ///< sizes of a micro-batch
  bool plans = false;                       ///< those without recomputation also with a memory plan
};

/// Layouts of a space.
struct LayoutList {
  std::vector<Layout> legal;  ///< each a valid scenario, in ascending order
  std::int64_t tried = 0;     ///< combinations that use the GPUs and divide the batch
  std::int64_t invalid = 0;   ///< of these, refused by a rule of the scenario
  bool complete = true;       ///< it was not stopped
};

/// A memory plan takes the place of recomputation: one layout alone is tried with it.
bool can_be_planned(const Layout& layout);

/// Every layout of `space` for the step of `base`, whose own layout counts for nothing. Pipelines
/// are split evenly by layers, and with the embedding and the head in the place of a layer each;
/// where `base` says how to split, only so. Choices
/// without an effect are left out: a schedule without a pipeline, sequence parallelism without a
/// tensor group, sharding over one rank. Ends where `stop`, which is asked now and then, says so.
LayoutList legal_layouts(
    const Scenario& base, const LayoutSpace& space,
    const std::function<bool()>& stop = [] { return false; });

/// Every rule that a scenario has to keep.
bool is_legal(const Scenario& scenario);

}  // namespace tessera
