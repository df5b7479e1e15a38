#include "workloads/parallel/layer_split.h"

#include <numeric>

#include "workloads/schedules/virtual_pipeline.h"

namespace tessera {
namespace {

/// `total` over `shares` equal ones.
std::optional<int> share(std::int64_t total, int shares) {
  if (shares == 0 && total == 0) return 0;
  if (total < 0 || shares == 0 || total % shares != 0) return std::nullopt;
  return static_cast<int>(total / shares);
}

/// Every part has something to run: a layer, the embedding, the layers that predict further tokens
/// or the head.
bool are_layers(const std::vector<int>& parts, std::int64_t layers, bool mtp_ahead) {
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const bool end = part == 0 || part + (mtp_ahead ? 2 : 1) >= parts.size();
    if (parts[part] < (end ? 0 : 1)) return false;
  }
  if (mtp_ahead && (parts.size() < 2 || parts.back() > 0)) return false;
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) == layers;
}

}  // namespace

std::optional<std::vector<int>> layers_of_parts(std::int64_t layers, const StepOptions& step) {
  const StageSplit& split = step.split;
  const int parts = VirtualPipeline(step).length();
  if (!split.layers_per_stage.empty()) {
    const bool fits = std::ssize(split.layers_per_stage) == parts &&
                      are_layers(split.layers_per_stage, layers, split.mtp_ahead);
    return fits ? std::optional(split.layers_per_stage) : std::nullopt;
  }
  const int stages = step.layout.pipeline;
  const int chunks = parts / stages;
  const std::int64_t places =
      layers + (split.embedding_as_layer ? 1 : 0) + (split.head_as_layer ? 1 : 0);
  const int first = split.first_stage_layers;
  const int last = split.last_stage_layers;
  const int others = stages - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const auto in_first = share(first, chunks);
  const auto in_last = share(last, chunks);
  const auto in_others = share(places - first - last, others * chunks);
  if (!in_first || !in_last || !in_others || others < 0) return std::nullopt;
  std::vector<int> result(static_cast<std::size_t>(parts), *in_others);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto begin = static_cast<std::size_t>(chunk * stages);
    if (first > 0) result[begin] = *in_first;
    if (last > 0) result[begin + static_cast<std::size_t>(stages) - 1] = *in_last;
  }
  if (split.embedding_as_layer) --result.front();
  if (split.head_as_layer) --result.back();
  return are_layers(result, layers, split.mtp_ahead) ? std::optional(result) : std::nullopt;
}

}  // namespace tessera
