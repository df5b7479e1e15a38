#include "workloads/parallel/gradient_buckets.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

/// Elements of the block's parameters in the order of registration. A table that another block
/// counts leaves a gradient here too; then the block is one piece.
std::vector<std::int64_t> tensors_of(const Block& block, std::int64_t element) {
  std::vector<std::int64_t> tensors;
  for (const Storage& storage : block.storages) {
    if (storage.role == TensorRole::gradient) tensors.push_back(storage.bytes.value() / element);
  }
  const std::int64_t sum = std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
  if (sum != block.parameters) tensors.assign(1, block.parameters);
  return tensors;
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const ModelGraph& graph, const StepOptions& step,
                                             int begin, int end, bool first_chunk) {
  const bool whole = step.data_parallel.align_gradients && !first_chunk;
  const std::int64_t element = element_bytes(step.formats.gradients);
  std::vector<GradientBucket> buckets;
  GradientBucket open;
  const Bytes least(step.data_parallel.bucket_per_replica.value() * step.layout.data);
  Bytes limit = std::max(step.data_parallel.first_bucket, least);
  for (int position = end; position-- > begin;) {
    const std::vector<std::int64_t> tensors = tensors_of(graph.at(position), element);
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
      if (*tensor == 0) continue;
      if (open.parameters == 0) open.first = position;
      open.parameters += *tensor;
      open.ready = position;
      if (whole || Bytes(open.parameters * element) < limit) continue;
      buckets.push_back(open);
      open = {};
      limit = std::max(step.data_parallel.bucket, least);
    }
  }
  if (open.parameters > 0) buckets.push_back(open);
  return buckets;
}

}  // namespace tessera
