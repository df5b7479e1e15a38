#pragma once

#include <cstdint>
#include <vector>

#include "workloads/model_graph.h"
#include "workloads/step_options.h"

namespace tessera {

/// Gradients that are summed together.
struct GradientBucket {
  std::int64_t parameters = 0;
  bool experts = false;  ///< that are spread over ranks: they share no bucket with the others
  int first = 0;         ///< position in ModelGraph::order of the block whose backward opens it
  int ready = 0;         ///< of the block whose backward completes it; <= first
};

/// Gradients of the blocks [begin, end) in the order in which backward makes them. A bucket closes
/// with the tensor that fills it, `DataParallel::first_bucket` or `bucket`, or where that is more
/// `bucket_per_replica` for each data-parallel rank; tensors are not cut. Experts that are spread
/// over ranks have buckets of their own, behind the others: a layer's are one piece.
/// `first_chunk`: of the first stage; with `align_gradients` others are one bucket.
/// Source: PyTorch torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size;
/// Megatron-Core distributed/distributed_data_parallel.py (expert_parallel_params; recalled).
std::vector<GradientBucket> gradient_buckets(const ModelGraph& graph, const StepOptions& step,
                                             int begin, int end, bool first_chunk);

}  // namespace tessera
