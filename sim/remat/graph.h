#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::remat {

/// Integers, so that a plan is the same on every machine.
using Nanoseconds = std::int64_t;
using ByteCount = std::int64_t;
using OpId = std::int32_t;      ///< position in program order
using TensorId = std::int32_t;  ///< in the order of producers

/// What an operator moves over a link that copies to and from the host take too: both go at a lower
/// pace for as long as they are beside each other. It begins with the operator where it takes
/// longer, as others hide it, and ends with it where not.
struct LinkUse {
  Nanoseconds time = 0;       ///< alone; 0: the operator takes nothing of the link
  Nanoseconds slack = 0;      ///< by which it can last longer before the operator does
  double pace = 1;            ///< of the operator beside copies, in (0, 1]
  double pace_of_copies = 1;  ///< beside the operator, in (0, 1]
  bool operator==(const LinkUse&) const = default;
};

/// What runs beside operators, one behind the other in the order in which operators launch it: a
/// gather of parameters, a reduction of gradients. Its LinkUse has no slack.
struct Transfer {
  Nanoseconds time = 0;  ///< alone; 0: the operator launches none
  OpId awaits = -1;      ///< the operator that launched the one that must have ended before
  bool operator==(const Transfer&) const = default;
};

/// One operator as a planner sees it. `inputs` are distinct tensors of earlier operators.
struct OpSpec {
  std::string name;
  Nanoseconds time = 0;
  ByteCount workspace = 0;           ///< held while the operator runs
  std::vector<TensorId> inputs;      ///< tensors (storages, not views) that it reads
  std::vector<ByteCount> out_bytes;  ///< a new tensor each
  bool recomputable = true;          ///< false for what cannot be run again (a data loader)
  LinkUse link = {};                 ///< of what the operator launches, if it does
  Transfer transfer = {};
  /// Of its run in program order, where that is not `time`: nothing else is launched with it.
  std::optional<Nanoseconds> first_time = {};
};

/// How far a step is whose rest is planned.
struct StepProgress {
  OpId done = 0;               ///< so many operators have run: only running them again costs, and
                               ///< their stages have no peaks
  std::vector<TensorId> gone;  ///< that they made, and that are not on the device any more: to be
                               ///< used again they are made again
};

/// Operators in program order with the tensors between them. Constants (weights, inputs) are no
/// tensors of the graph: they count as `static_bytes`. Immutable.
class Graph {
 public:
  Graph() = default;
  /// `keep`: tensors that must be on the device at the end. Throws InputError (where = name) for a
  /// tensor that is used before it is made, a negative size or time, or sums beyond 2^61.
  Graph(std::string name, const std::vector<OpSpec>& ops, const std::vector<TensorId>& keep,
        ByteCount static_bytes, OpId first_backward = -1, const StepProgress& progress = {});

  const std::string& name() const { return name_; }
  int ops() const { return static_cast<int>(times_.size()); }
  int tensors() const { return static_cast<int>(sizes_.size()); }
  std::string_view op_name(OpId op) const { return names_[op]; }
  Nanoseconds time(OpId op) const { return times_[op]; }
  Nanoseconds first_time(OpId op) const {
    if (op < done_) return 0;
    return first_times_.empty() ? times_[op] : first_times_[op];
  }
  OpId done() const { return done_; }
  /// Whether any operator takes something of the link.
  bool uses_link() const { return !link_uses_.empty(); }
  /// Where `uses_link()`.
  const LinkUse& link_use(OpId op) const { return link_uses_[op]; }
  /// Whether any operator launches a transfer.
  bool has_transfers() const { return !transfers_.empty(); }
  /// Where `has_transfers()`.
  const Transfer& transfer(OpId op) const { return transfers_[op]; }
  ByteCount workspace(OpId op) const { return workspaces_[op]; }
  bool recomputable(OpId op) const { return recomputable_[op] != 0; }
  std::span<const TensorId> inputs(OpId op) const {
    return {input_ids_.data() + input_begin_[op], input_ids_.data() + input_begin_[op + 1]};
  }
  /// Outputs have consecutive ids: [first_output(op), first_output(op + 1)).
  TensorId first_output(OpId op) const { return output_begin_[op]; }
  int output_count(OpId op) const { return output_begin_[op + 1] - output_begin_[op]; }
  OpId producer(TensorId tensor) const { return producers_[tensor]; }
  ByteCount size(TensorId tensor) const { return sizes_[tensor]; }
  bool gone(TensorId tensor) const { return !gone_.empty() && gone_[tensor] != 0; }
  bool kept(TensorId tensor) const { return kept_[tensor] != 0; }
  const std::vector<TensorId>& kept_tensors() const { return keep_; }
  /// Operators that read `tensor`, ascending.
  std::span<const OpId> consumers(TensorId tensor) const {
    return {consumer_ids_.data() + consumer_begin_[tensor],
            consumer_ids_.data() + consumer_begin_[tensor + 1]};
  }
  ByteCount static_bytes() const { return static_bytes_; }
  /// Where the backward pass starts, for planners that need to know; where the file does not say,
  /// the operator of the largest memory without a plan.
  OpId first_backward() const { return first_backward_; }
  /// Of all operators once.
  Nanoseconds base_time() const { return base_time_; }
  /// Until all operators and transfers have ended without a plan; no plan takes less.
  Nanoseconds unplanned_time() const { return unplanned_time_; }
  /// The same to a planner: equal in everything but names.
  bool same_problem(const Graph& other) const;
  /// Inputs, outputs and workspace of one operator, without static bytes.
  ByteCount working_set(OpId op) const;

 private:
  void mark_tensors(const std::vector<TensorId>& keep, const std::vector<TensorId>& gone);
  void index_consumers();
  void find_unplanned_time();

  std::string name_;
  std::vector<std::string> names_;
  std::vector<Nanoseconds> times_;
  std::vector<ByteCount> workspaces_;
  std::vector<std::uint8_t> recomputable_;
  std::vector<LinkUse> link_uses_;        ///< empty where none does
  std::vector<Transfer> transfers_;       ///< likewise
  std::vector<Nanoseconds> first_times_;  ///< likewise
  std::vector<std::int32_t> input_begin_{0}, output_begin_{0}, consumer_begin_{0};
  std::vector<TensorId> input_ids_;
  std::vector<OpId> consumer_ids_, producers_;
  std::vector<ByteCount> sizes_;
  std::vector<std::uint8_t> kept_, gone_;
  std::vector<TensorId> keep_;
  ByteCount static_bytes_ = 0;
  OpId first_backward_ = -1;
  OpId done_ = 0;
  Nanoseconds base_time_ = 0, unplanned_time_ = 0;
};

/// The least memory in which any plan can run: every operator needs its own working set, and the
/// kept tensors have to be there together at the end. With swapping and enough host memory a plan
/// exists for every budget from here up (evict everything between any two operators).
struct LowerBound {
  ByteCount bytes = 0;  ///< with static bytes
  OpId op = -1;         ///< whose working set it is; -1 where the kept tensors decide
};
LowerBound lower_bound(const Graph& graph);

/// Peak without any plan: a tensor lives from its producer to its last reader [bytes, with static].
ByteCount base_peak(const Graph& graph);

/// The operator at which that peak is reached first.
OpId base_peak_op(const Graph& graph);

}  // namespace tessera::remat
