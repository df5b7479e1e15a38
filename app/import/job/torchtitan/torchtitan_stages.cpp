#include "app/import/job/torchtitan/torchtitan_stages.h"

#include <algorithm>

namespace tessera::torchtitan {

std::vector<std::int64_t> layers_of_stages(std::int64_t layers, std::int64_t stages) {
  const std::int64_t parts = layers + 2;
  std::vector<std::int64_t> counts;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    counts.push_back(parts / stages + (stage < parts % stages ? 1 : 0));
  --counts.front();
  --counts.back();
  const bool holds = std::ranges::all_of(counts, [](std::int64_t count) { return count >= 0; });
  return holds ? counts : std::vector<std::int64_t>();
}

std::vector<std::int64_t> layers_of_stages_2024(std::int64_t layers, std::int64_t stages) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(stages), layers / stages);
  std::int64_t left = layers % stages;
  for (std::size_t stage = 1; stage + 1 < counts.size() && left > 0; ++stage, --left)
    ++counts[stage];
  counts.back() += left;
  return counts;
}

}  // namespace tessera::torchtitan
