#include "workloads/parallel/gradient_buckets.h"

#include <algorithm>
#include <numeric>

#include "workloads/sharding.h"

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

/// What one kind of bucket takes of a block.
std::vector<std::int64_t> pieces_of(const StepOptions& step, const Block& block, bool experts) {
  const std::int64_t spread = spread_experts(step, block);
  if (experts) return {spread};
  if (spread > 0) return {block.parameters - spread};
  return tensors_of(block, element_bytes(step.formats.gradients));
}

/// One kind of bucket of the blocks [range.first, range.ready).
void add_buckets(const ModelGraph& graph, const StepOptions& step, const GradientBucket& range,
                 bool whole, std::vector<GradientBucket>& buckets) {
  const std::int64_t element = element_bytes(step.formats.gradients);
  GradientBucket open{.experts = range.experts};
  const Bytes least(step.data_parallel.bucket_per_replica.value() * step.layout.data);
  Bytes limit = std::max(step.data_parallel.first_bucket, least);
  for (int position = range.ready; position-- > range.first;) {
    const auto tensors = pieces_of(step, graph.at(position), range.experts);
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
      if (*tensor == 0) continue;
      if (open.parameters == 0) open.first = position;
      open.parameters += *tensor;
      open.ready = position;
      if (whole || Bytes(open.parameters * element) < limit) continue;
      buckets.push_back(open);
      open = {.experts = range.experts};
      limit = std::max(step.data_parallel.bucket, least);
    }
  }
  if (open.parameters > 0) buckets.push_back(open);
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const ModelGraph& graph, const StepOptions& step,
                                             int begin, int end, bool first_chunk) {
  const bool whole = step.data_parallel.align_gradients && !first_chunk;
  std::vector<GradientBucket> buckets;
  for (const bool experts : {false, true})
    add_buckets(graph, step, {.experts = experts, .first = begin, .ready = end}, whole, buckets);
  return buckets;
}

}  // namespace tessera
