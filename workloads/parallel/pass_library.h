#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "workloads/model_graph.h"
#include "workloads/parallel/pass.h"
#include "workloads/schedules/schedule.h"

namespace tessera {

enum class GradientArrival : std::uint8_t {
  added,   ///< to what is in the buffer already
  stored,  ///< gradients were set to None: the first micro-batch's become the buffer
};

/// What tells passes over one block apart.
struct PassVariant {
  int block = 0;  ///< index in `ModelGraph::blocks`
  PassDirection direction = PassDirection::forward;
  bool starts_with_message = false;  ///< its input came from another stage
  bool ends_with_message = false;    ///< its output goes to another stage
  bool keeps_sent = false;           ///< and stays; of backward: until now
  GradientArrival gradients = GradientArrival::added;
  bool makes_kept_copies = false;  ///< forward of a step's first micro-batch
  bool operator==(const PassVariant&) const = default;
};

/// Passes over the blocks of a graph; equal passes, also of different stages, share their segments.
class PassLibrary {
 public:
  /// `graph` and `segments` must outlive the library; new segments are appended.
  /// `segment_per_call`: passes over blocks have a segment per kernel.
  PassLibrary(const ModelGraph& graph, std::vector<Segment>& segments,
              bool segment_per_call = false)
      : graph_(graph), segments_(segments), segment_per_call_(segment_per_call) {}

  const Pass& pass(const PassVariant& variant);
  /// Whether forward over a block makes something of parameters alone that all micro-batches of a
  /// step use: it runs with the first, and not again for backward.
  bool makes_kept_copies(int block) const;
  /// Ops that belong to no block.
  Pass cut(const std::vector<GraphOp>& ops, const std::string& name) {
    return cut_into_segments({.ops = ops, .name = name}, {}, segments_);
  }
  /// Nothing, for ops that only wait.
  SegmentId empty_segment();
  /// Work of the CPU that moves so many bytes of its memory; on StreamKind::host.
  SegmentId host_segment(const std::string& name, Bytes moved);
  const ModelGraph& graph() const { return graph_; }

 private:
  Pass make(const PassVariant& variant);
  std::vector<GraphOp> forward_ops(const PassVariant& variant) const;
  std::vector<GraphOp> backward_ops(const PassVariant& variant) const;

  const ModelGraph& graph_;
  std::vector<Segment>& segments_;
  bool segment_per_call_;
  SegmentId empty_segment_;
  std::deque<std::pair<PassVariant, Pass>> known_;  ///< at addresses that stay
};

}  // namespace tessera
