#include "sim/plan/memory/planned_pass.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

constexpr int kNone = -1;
constexpr PlannedWait kNothing{};
constexpr std::array kPartNames{".forward", ".backward", ".weight_gradient"};

/// Of parameters alone, in buffers: a step's first micro-batch makes it for all others.
bool makes_kept_copy(const StageOp& op) {
  return op.op->kind == GraphOpKind::kernel && op.op->phase == Phase::forward &&
         !op.op->reads.empty() && op.reads.empty() && op.writes.empty();
}

StreamKind stream_of(GroupKind group) {
  if (group == GroupKind::context) return StreamKind::context_comm;
  const bool of_experts = group == GroupKind::expert || group == GroupKind::expert_tensor;
  return of_experts ? StreamKind::expert_comm : StreamKind::tensor_comm;
}

class PassWriter {
 public:
  PassWriter(const StageOps& stage, const StageGraph& graph, std::int32_t block,
             const std::vector<std::string>& names, std::vector<Segment>& segments, bool apart)
      : stage_(stage),
        graph_(graph),
        block_(block),
        names_(names),
        segments_(segments),
        apart_(apart),
        resident_(stage.tensors.size(), 0),
        ran_(graph.groups.size(), 0),
        copied_out_(stage.tensors.size()),
        arriving_(stage.tensors.size()) {}

  std::array<MemoryPass, kPassParts> run(const remat::Schedule& schedule) {
    std::array<MemoryPass, kPassParts> passes;
    for (const remat::Step& step : schedule) {
      const bool turns = step.action == remat::Action::compute &&
                         group(step.id).kind == OpGroup::Kind::other_micro_batches;
      if (turns) {
        passes[static_cast<std::size_t>(part_)] = finish_pass();
        ++part_;
      } else {
        perform(step);
      }
    }
    passes[static_cast<std::size_t>(part_)] = finish_pass();
    return passes;
  }
  /// Of a step's first micro-batch: with what is done once, and where `stores`, without the kernels
  /// that add to gradients of earlier ones.
  void be_first(bool stores) {
    is_first_ = true;
    stores_gradients_ = stores;
  }

 private:
  const OpGroup& group(std::int32_t id) const {
    return graph_.groups[static_cast<std::size_t>(id)];
  }
  int tensor(remat::TensorId id) const { return graph_.tensors[static_cast<std::size_t>(id)]; }
  Bytes bytes(int tensor) const { return stage_.tensors[static_cast<std::size_t>(tensor)].bytes; }

  void perform(const remat::Step& step) {
    switch (step.action) {
      case remat::Action::compute:
        return compute(step.id);
      case remat::Action::drop:
        return release(tensor(step.id));
      case remat::Action::copy_out:
        return copy_out(tensor(step.id));
      case remat::Action::release: {
        const int freed = tensor(step.id);
        close();
        next_waits_.push_back(copied_out_[static_cast<std::size_t>(freed)]);
        return release(freed);
      }
      case remat::Action::copy_in:
        return copy_in(tensor(step.id));
    }
  }

  void compute(std::int32_t id) {
    const OpGroup& ops = group(id);
    if (ops.kind != OpGroup::Kind::operators) return message(ops.kind);
    const bool again = std::exchange(ran_[static_cast<std::size_t>(id)], 1) != 0;
    if (ends_group_) close();
    await_inputs(id);
    if (!again) count_block(stage_.ops[static_cast<std::size_t>(ops.begin)]);
    const int layer = stage_.ops[static_cast<std::size_t>(ops.begin)].layer;
    if (open_ && (layer != layer_ || segment().phase != phase_of(ops.begin))) close();
    layer_ = layer;
    open(ops.begin);
    const Bytes extra = take_outputs(id);
    if (extra.value() > 0) note(MemoryEventKind::allocate, kNone, extra);
    for (int i = ops.begin; i < ops.end; ++i) run_operator(i, again);
    if (extra.value() > 0) {
      open(ops.end - 1);
      note(MemoryEventKind::free, kNone, extra);
    }
    if (!apart_ || !open_) return;
    segment().repeatable = graph_.graph.recomputable(id) && runs_kernels_alone(ops);
    ends_group_ = true;
  }

  bool runs_kernels_alone(const OpGroup& ops) const {
    for (int i = ops.begin; i < ops.end; ++i) {
      const GraphOpKind kind = stage_.ops[static_cast<std::size_t>(i)].op->kind;
      if (kind != GraphOpKind::kernel && kind != GraphOpKind::view) return false;
    }
    return true;
  }

  void count_block(const StageOp& op) {
    if (op.block == last_block_ && op.layer == last_layer_) return;
    if (last_block_ != kNone) {
      close();  // what is open is of the block before
      ++run_;
    }
    last_block_ = op.block;
    last_layer_ = op.layer;
  }

  /// Outputs become resident. Returns what the group holds besides while it runs: its workspace,
  /// and a second copy of outputs that are there already.
  Bytes take_outputs(std::int32_t id) {
    const remat::Graph& graph = graph_.graph;
    Bytes extra(graph.workspace(id));
    for (remat::TensorId q = graph.first_output(id); q < graph.first_output(id + 1); ++q) {
      const int made = tensor(q);
      if (resident_[static_cast<std::size_t>(made)]) {
        extra += bytes(made);
      } else {
        take(made);
      }
    }
    return extra;
  }

  void await_inputs(std::int32_t id) {
    for (const remat::TensorId q : graph_.graph.inputs(id)) {
      PlannedWait& copy = arriving_[static_cast<std::size_t>(tensor(q))];
      if (copy.op == kNone) continue;
      close();
      next_waits_.push_back(std::exchange(copy, kNothing));
    }
  }

  void run_operator(int i, bool again) {
    const GraphOp& op = *stage_.ops[static_cast<std::size_t>(i)].op;
    if (stores_gradients_ && op.accumulates_gradient) return;
    if (!is_first_ && makes_kept_copy(stage_.ops[static_cast<std::size_t>(i)])) return;
    switch (op.kind) {
      case GraphOpKind::kernel:
        open(i).kernels.push_back({op.kernel, op.name, again || op.recomputed});
        touch(i);
        segment().host_ops += op.host_calls;
        break;
      case GraphOpKind::view:
        open(i).host_ops += op.host_calls;
        break;
      case GraphOpKind::host_sync:
        open(i).host_sync = true;
        close();
        break;
      case GraphOpKind::collective:
        close();
        collective(op);
        break;
      case GraphOpKind::wait:
        close();
        awaited_collective_ = last_collective_;
        break;
    }
  }

  void collective(const GraphOp& op) {
    PlannedOp planned;
    planned.op.kind = op.collective;
    planned.op.stream = stream_of(op.group);
    planned.op.phase = op.phase;
    planned.op.group = op.group;
    planned.op.bytes = op.bytes;
    planned.op.layer = layer_;
    planned.waits = {here(last_kernels_), here(awaited_collective_)};
    last_collective_ = push(std::move(planned));
  }

  void message(OpGroup::Kind kind) {
    if (kind == OpGroup::Kind::receive_input) start_with(stage_.received_input);
    if (kind == OpGroup::Kind::receive_gradient) start_with(stage_.received_gradient);
  }
  void start_with(int tensor) {
    open(first_op());
    take(tensor);
  }

  void copy_out(int tensor) {
    if (copied_out_[static_cast<std::size_t>(tensor)].op != kNone) return;
    close();
    copied_out_[static_cast<std::size_t>(tensor)] =
        here(copy(OpKind::copy_out, StreamKind::device_to_host, tensor, kNothing));
  }
  void copy_in(int tensor) {
    if (!open_) open(first_op());
    take(tensor);
    close();
    arriving_[static_cast<std::size_t>(tensor)] =
        here(copy(OpKind::copy_in, StreamKind::host_to_device, tensor,
                  copied_out_[static_cast<std::size_t>(tensor)]));
  }
  int copy(OpKind kind, StreamKind stream, int tensor, PlannedWait after) {
    PlannedOp planned;
    planned.op.kind = kind;
    planned.op.stream = stream;
    planned.op.phase = part_ > 0 ? Phase::backward : Phase::forward;
    planned.op.bytes = bytes(tensor);
    planned.op.layer = layer_;
    const int collective = kind == OpKind::copy_out ? awaited_collective_ : kNone;
    planned.waits = {here(last_kernels_), after.op == kNone ? here(collective) : after};
    return push(std::move(planned));
  }

  void take(int tensor) {
    resident_[static_cast<std::size_t>(tensor)] = 1;
    note(MemoryEventKind::allocate, tensor, bytes(tensor));
  }
  void release(int tensor) {
    resident_[static_cast<std::size_t>(tensor)] = 0;
    if (!open_) open(first_op());
    note(MemoryEventKind::free, tensor, bytes(tensor));
  }
  void note(MemoryEventKind kind, int tensor, Bytes size) {
    const auto kernel = static_cast<std::int32_t>(segment().kernels.size());
    segment().memory.push_back(
        {kind, kernel, tensor == kNone ? StorageId() : StorageId(tensor), size});
  }

  /// The open segment needs what operator `i` reads and writes.
  void touch(int i) {
    const StageOp& op = stage_.ops[static_cast<std::size_t>(i)];
    for (const auto* tensors : {&op.reads, &op.writes}) {
      for (const int tensor : *tensors) {
        std::vector<StorageId>& touched = segment().touches;
        if (std::ranges::find(touched, StorageId(tensor)) == touched.end())
          touched.emplace_back(tensor);
      }
    }
    if (!apart_) return;
    for (const int tensor : op.writes) segment().writes.emplace_back(tensor);
  }

  Segment& segment() { return segments_.back(); }
  Phase phase_of(int i) const {
    const auto at =
        static_cast<std::size_t>(std::clamp(i, 0, static_cast<int>(stage_.ops.size()) - 1));
    if (part_ > 0) return Phase::backward;
    return stage_.ops[at].op->phase;
  }

  /// The segment that operator `i` goes to.
  Segment& open(int i) {
    if (open_ && segment().phase != phase_of(i)) close();
    if (open_) return segment();
    open_ = true;
    const auto at =
        static_cast<std::size_t>(std::clamp(i, 0, static_cast<int>(stage_.ops.size()) - 1));
    const StageOp& op = stage_.ops[at];
    segments_.emplace_back();
    segment().name = names_[static_cast<std::size_t>(op.block)] +
                     kPartNames[static_cast<std::size_t>(part_)] + ".planned";
    segment().phase = phase_of(i);
    segment().block = block_;
    return segment();
  }

  void close() {
    ends_group_ = false;
    if (!open_) return;
    open_ = false;
    Bytes now;
    for (const MemoryEvent& event : segment().memory) {
      now += event.kind == MemoryEventKind::allocate ? event.bytes : -event.bytes;
      segment().peak_above_start = std::max(segment().peak_above_start, now);
    }
    segment().net_memory = now;
    PlannedOp planned;
    planned.op.segment = SegmentId(static_cast<std::int32_t>(segments_.size()) - 1);
    planned.op.phase = segment().phase;
    planned.op.host_sync = segment().host_sync;
    planned.op.layer = layer_;
    planned.waits = std::exchange(next_waits_, {});
    planned.waits.push_back(here(std::exchange(awaited_collective_, kNone)));
    last_kernels_ = push(std::move(planned));
  }

  PlannedWait here(int op) const { return {part_, op}; }
  /// First operator of the pass.
  int first_op() const {
    if (part_ == 0) return 0;
    return part_ == 1 ? stage_.forward_ops : stage_.late_ops;
  }

  int push(PlannedOp planned) {
    std::erase_if(planned.waits, [](const PlannedWait& wait) { return wait.op == kNone; });
    planned.run = run_;
    pass_.push_back(std::move(planned));
    return static_cast<int>(pass_.size()) - 1;
  }

  MemoryPass finish_pass() {
    close();
    last_kernels_ = last_collective_ = awaited_collective_ = kNone;
    next_waits_.clear();
    run_ = 0;
    last_block_ = kNone;
    return std::exchange(pass_, {});
  }

  const StageOps& stage_;
  const StageGraph& graph_;
  std::int32_t block_;
  const std::vector<std::string>& names_;
  std::vector<Segment>& segments_;
  bool apart_;
  bool ends_group_ = false;  ///< the open segment is of a group that is complete
  std::vector<char> resident_, ran_;
  std::vector<PlannedWait> copied_out_, arriving_;  ///< by tensor
  MemoryPass pass_;
  std::vector<PlannedWait> next_waits_;  ///< of the next kernels
  int last_kernels_ = kNone, last_collective_ = kNone, awaited_collective_ = kNone;
  int layer_ = kNoLayer;
  int part_ = 0;                                              ///< PassPart
  int run_ = 0, last_block_ = kNone, last_layer_ = kNoLayer;  ///< of the operators that run first
  bool open_ = false, stores_gradients_ = false, is_first_ = false;
};

}  // namespace

MemoryPasses write_passes(const StageOps& stage, const StageGraph& graph,
                          const remat::Schedule& schedule, std::int32_t block,
                          const std::vector<std::string>& block_names,
                          std::vector<Segment>& segments, bool apart) {
  PassWriter writer(stage, graph, block, block_names, segments, apart);
  MemoryPasses passes;
  passes.usual = writer.run(schedule);
  const bool accumulates =
      std::ranges::any_of(stage.ops, [](const StageOp& op) { return op.op->accumulates_gradient; });
  const bool copies = std::ranges::any_of(stage.ops, makes_kept_copy);
  if (!accumulates && !copies) return passes;
  std::vector<Segment> written;  // some are there already
  PassWriter first(stage, graph, block, block_names, written, apart);
  first.be_first(accumulates);
  passes.first = first.run(schedule);
  if (!copies) passes.first.front().clear();
  for (std::size_t part = 1; !accumulates && part < kPassParts; ++part) passes.first[part].clear();
  for (MemoryPass& pass : passes.first) {
    for (PlannedOp& planned : pass) {
      if (planned.op.kind != OpKind::kernels) continue;
      segments.push_back(std::move(written[static_cast<std::size_t>(planned.op.segment.index())]));
      planned.op.segment = SegmentId(static_cast<std::int32_t>(segments.size()) - 1);
    }
  }
  return passes;
}

}  // namespace tessera
