#include "sim/plan/memory/stage_graph.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera {
namespace {

constexpr int kNowhere = -1;

/// Two flows over one link: the first one's rate beside the second over its rate alone. Who asks
/// for less than half has what it asks for.
double pace_beside(BytesPerSecond own, BytesPerSecond other, BytesPerSecond limit) {
  if (own + other <= limit) return 1;
  return std::min(1.0, std::max(limit / 2, limit - other) / own);
}

/// First and last operator, over the whole stage, that touches a tensor.
struct Range {
  int first = kNowhere, last = kNowhere;
};

class GraphBuilder {
 public:
  GraphBuilder(const StageOps& stage, const OpTime& time, const StageRoom& room)
      : stage_(stage),
        time_(time),
        room_(room),
        id_(stage.tensors.size(), kNowhere),
        launched_(stage.transfers.size(), kNowhere) {}

  StageGraph run(const std::string& name) && {
    collect_groups();
    find_ranges();
    find_times();
    for (std::size_t g = 0; g < result_.groups.size(); ++g) add(static_cast<int>(g));
    result_.graph = remat::Graph(name, specs_, {}, room_.static_bytes.value(), first_backward_);
    return std::move(result_);
  }

 private:
  const StageOp& op(int i) const { return stage_.ops[static_cast<std::size_t>(i)]; }

  void add_pseudo(OpGroup::Kind kind) { result_.groups.push_back({kind, 0, 0}); }

  void collect_groups() {
    if (stage_.received_input >= 0) add_pseudo(OpGroup::Kind::receive_input);
    group_pass(PassPart::forward, 0, stage_.forward_ops);
    if (stage_.sent_output >= 0) add_pseudo(OpGroup::Kind::send_output);
    first_backward_ = static_cast<remat::OpId>(result_.groups.size());
    add_pseudo(OpGroup::Kind::other_micro_batches);
    if (stage_.received_gradient >= 0) add_pseudo(OpGroup::Kind::receive_gradient);
    group_pass(PassPart::backward, stage_.forward_ops, stage_.late_ops);
    if (stage_.sent_gradient >= 0) add_pseudo(OpGroup::Kind::send_gradient);
    const int ops = static_cast<int>(stage_.ops.size());
    if (stage_.late_ops == ops) return;
    add_pseudo(OpGroup::Kind::other_micro_batches);
    group_pass(PassPart::weight_gradient, stage_.late_ops, ops);
  }

  /// A group begins with each kernel, and with a collective that makes a tensor; it is joined with
  /// earlier ones where it writes to what they made.
  void group_pass(PassPart part, int begin, int end) {
    std::vector<OpGroup> groups;
    std::vector<int> writer(stage_.tensors.size(), kNowhere);
    for (int i = begin; i < end; ++i) {
      const GraphOp& graph_op = *op(i).op;
      const bool starts = graph_op.kind == GraphOpKind::kernel ||
                          (graph_op.kind == GraphOpKind::collective && makes_tensor(i, writer));
      if (starts || groups.empty()) groups.push_back({OpGroup::Kind::operators, i, i});
      groups.back().end = i + 1;
      for (const int tensor : op(i).writes) {
        int& first = writer[static_cast<std::size_t>(tensor)];
        if (first == kNowhere) first = i;
        while (groups.size() > 1 && groups.back().begin > first) join_last(groups);
      }
    }
    add_with_transfers(part, groups);
  }
  void add_with_transfers(PassPart part, const std::vector<OpGroup>& groups) {
    int layers = 0;  // that have begun
    int before = kNoLayer;
    for (const OpGroup& group : groups) {
      const int layer = std::exchange(before, op(group.begin).layer);
      if (layers == 0 || layer != before) begin_layer(part, layers++);
      result_.groups.push_back(group);
    }
    launch(part, [&](int launched) { return launched >= layers; });
  }
  void begin_layer(PassPart part, int layer) {
    launch(part, [&](int launched) { return launched == layer; });
    for (std::size_t t = 0; t < stage_.transfers.size(); ++t)
      if (stage_.transfers[t].part == part && stage_.transfers[t].awaited == layer)
        add_transfer(OpGroup::Kind::await_transfer, t);
  }
  template <typename Begins>
  void launch(PassPart part, const Begins& begins) {
    for (std::size_t t = 0; t < stage_.transfers.size(); ++t)
      if (stage_.transfers[t].part == part && begins(stage_.transfers[t].launched))
        add_transfer(OpGroup::Kind::launch_transfer, t);
  }
  void add_transfer(OpGroup::Kind kind, std::size_t t) {
    result_.groups.push_back({kind, 0, 0, static_cast<int>(t)});
  }
  bool makes_tensor(int i, const std::vector<int>& writer) const {
    return std::ranges::any_of(op(i).writes, [&](int tensor) {
      return writer[static_cast<std::size_t>(tensor)] == kNowhere && !was_read(i, tensor);
    });
  }
  bool was_read(int i, int tensor) const {
    return std::ranges::find(op(i).reads, tensor) != op(i).reads.end();
  }
  static void join_last(std::vector<OpGroup>& groups) {
    const int end = groups.back().end;
    groups.pop_back();
    groups.back().end = end;
  }

  void find_ranges() {
    ranges_.resize(stage_.tensors.size());
    for (int i = 0; i < static_cast<int>(stage_.ops.size()); ++i) {
      for (const auto* list : {&op(i).reads, &op(i).writes}) {
        for (const int tensor : *list) {
          Range& range = ranges_[static_cast<std::size_t>(tensor)];
          if (range.first == kNowhere) range.first = i;
          range.last = i;
        }
      }
    }
  }
  /// Kernels take their time; a collective takes what is left of it where it is awaited, for
  /// weight gradients run beside those of backward.
  void find_times() {
    times_.assign(stage_.ops.size(), 0.0);
    links_.assign(stage_.ops.size(), {});
    double now = 0, communicated = 0;
    int last = kNowhere;  // collective that started
    for (int i = 0; i < static_cast<int>(stage_.ops.size()); ++i) {
      const GraphOp& graph_op = *op(i).op;
      const OpCost cost = time_(graph_op);
      const double time = cost.time.value();
      if (graph_op.kind == GraphOpKind::collective) {
        communicated = std::max(communicated, now) + time;
        last = i;
        links_[static_cast<std::size_t>(i)] = link_use(cost);
      } else if (graph_op.kind == GraphOpKind::wait && last != kNowhere) {
        await(std::exchange(last, kNowhere), communicated - now);
        now = std::max(now, communicated);
      } else {
        times_[static_cast<std::size_t>(i)] = time;
        now += time;
      }
    }
    // Nothing awaits it within the micro-batch.
    if (last != kNowhere) await(last, communicated - now);
  }
  /// The collective `op` ends so much later than what ran beside it.
  void await(int op, double later) {
    times_[static_cast<std::size_t>(op)] = std::max(0.0, later);
    links_[static_cast<std::size_t>(op)].slack = std::llround(std::max(0.0, -later) * 1e9);
  }
  remat::LinkUse link_use(const OpCost& cost) const {
    if (cost.moving <= Seconds(0) || room_.copies.value() <= 0) return {};
    const double own = pace_beside(cost.rate, room_.copies, cost.limit);
    const double copies = pace_beside(room_.copies, cost.rate, cost.limit);
    if (own == 1 && copies == 1) return {};
    return {.time = std::llround(cost.moving.value() * 1e9), .pace = own, .pace_of_copies = copies};
  }
  bool is_sent(int tensor) const {
    return tensor == stage_.sent_output || tensor == stage_.sent_gradient;
  }

  void add(int g) {
    const OpGroup& group = result_.groups[static_cast<std::size_t>(g)];
    remat::OpSpec spec;
    switch (group.kind) {
      case OpGroup::Kind::operators:
        return add_operators(group);
      case OpGroup::Kind::receive_input:
        spec.name = "receive input";
        make(stage_.received_input, spec);
        break;
      case OpGroup::Kind::receive_gradient:
        spec.name = "receive gradient";
        make(stage_.received_gradient, spec);
        break;
      case OpGroup::Kind::send_output:
        spec.name = "send output";
        spec.inputs.push_back(id_[static_cast<std::size_t>(stage_.sent_output)]);
        break;
      case OpGroup::Kind::send_gradient:
        spec.name = "send gradient";
        spec.inputs.push_back(id_[static_cast<std::size_t>(stage_.sent_gradient)]);
        break;
      case OpGroup::Kind::launch_transfer:
        launch(group.transfer, spec);
        break;
      case OpGroup::Kind::await_transfer:
        spec.name = "await parameters";
        spec.transfer.awaits = launched_[static_cast<std::size_t>(group.transfer)];
        break;
      case OpGroup::Kind::other_micro_batches:
        spec.name = "other micro-batches";
        spec.workspace = room_.while_waiting.value();
        break;
    }
    spec.recomputable = false;
    specs_.push_back(std::move(spec));
  }

  void launch(int transfer, remat::OpSpec& spec) {
    const OpCost cost = time_(stage_.transfers[static_cast<std::size_t>(transfer)].op);
    spec.name = "transfer beside";
    spec.link = link_use(cost);
    spec.transfer.time = std::llround(cost.time.value() * 1e9);
    launched_[static_cast<std::size_t>(transfer)] = static_cast<remat::OpId>(specs_.size());
  }

  void make(int tensor, remat::OpSpec& spec) {
    id_[static_cast<std::size_t>(tensor)] = static_cast<remat::TensorId>(result_.tensors.size());
    result_.tensors.push_back(tensor);
    spec.out_bytes.push_back(stage_.tensors[static_cast<std::size_t>(tensor)].bytes.value());
  }

  void add_operators(const OpGroup& group) {
    remat::OpSpec spec;
    double time = 0;
    std::vector<int> outputs;
    for (int i = group.begin; i < group.end; ++i) {
      time += times_[static_cast<std::size_t>(i)];
      const remat::LinkUse& link = links_[static_cast<std::size_t>(i)];
      if (link.time > 0)
        spec.link = {spec.link.time + link.time, link.slack, link.pace, link.pace_of_copies};
      if (spec.name.empty() || op(i).op->kind == GraphOpKind::kernel) name(i, spec);
      for (const auto* list : {&op(i).reads, &op(i).writes})
        for (const int tensor : *list) use(tensor, group, spec, outputs);
    }
    spec.time = static_cast<remat::Nanoseconds>(std::llround(time * 1e9));
    spec.workspace = workspace(group).value();
    spec.recomputable = recomputable(group);
    for (const int tensor : outputs) make(tensor, spec);
    specs_.push_back(std::move(spec));
  }
  void name(int i, remat::OpSpec& spec) const {
    if (!spec.name.empty()) return;
    if (op(i).layer >= 0) spec.name = "layer " + std::to_string(op(i).layer) + ".";
    spec.name += op(i).op->name;
  }

  void use(int tensor, const OpGroup& group, remat::OpSpec& spec, std::vector<int>& outputs) {
    const remat::TensorId id = id_[static_cast<std::size_t>(tensor)];
    if (id != kNowhere) {
      if (std::ranges::find(spec.inputs, id) == spec.inputs.end()) spec.inputs.push_back(id);
      return;
    }
    const Range& range = ranges_[static_cast<std::size_t>(tensor)];
    const bool leaves = range.last >= group.end || is_sent(tensor);
    if (leaves && std::ranges::find(outputs, tensor) == outputs.end()) outputs.push_back(tensor);
  }

  bool is_within(int tensor, const OpGroup& group) const {
    const Range& range = ranges_[static_cast<std::size_t>(tensor)];
    return range.first >= group.begin && range.last < group.end && !is_sent(tensor);
  }

  /// Peak of what lives and dies within the group.
  Bytes workspace(const OpGroup& group) const {
    Bytes now, peak;
    for (int i = group.begin; i < group.end; ++i) {
      std::vector<int> touched = op(i).reads;
      for (const int tensor : op(i).writes)
        if (std::ranges::find(touched, tensor) == touched.end()) touched.push_back(tensor);
      for (const int tensor : touched)
        if (is_within(tensor, group) && ranges_[static_cast<std::size_t>(tensor)].first == i)
          now += stage_.tensors[static_cast<std::size_t>(tensor)].bytes;
      peak = std::max(peak, now);
      for (const int tensor : touched)
        if (is_within(tensor, group) && ranges_[static_cast<std::size_t>(tensor)].last == i)
          now -= stage_.tensors[static_cast<std::size_t>(tensor)].bytes;
    }
    return peak;
  }

  bool recomputable(const OpGroup& group) const {
    const bool backward = group.begin >= stage_.forward_ops;
    bool waits = true;
    for (int i = group.begin; i < group.end; ++i) {
      const GraphOp& graph_op = *op(i).op;
      if (graph_op.kind == GraphOpKind::host_sync) return false;
      if (graph_op.kind == GraphOpKind::collective) waits = false;
      if (graph_op.kind == GraphOpKind::wait) waits = true;
      if (graph_op.kind == GraphOpKind::collective && backward) return false;
      for (const int tensor : op(i).writes) {
        const Range& range = ranges_[static_cast<std::size_t>(tensor)];
        if (range.first < group.begin || overwritten_later(tensor, group)) return false;
      }
    }
    return waits;
  }
  bool overwritten_later(int tensor, const OpGroup& group) const {
    for (int i = group.end; i <= ranges_[static_cast<std::size_t>(tensor)].last; ++i)
      if (std::ranges::find(op(i).writes, tensor) != op(i).writes.end()) return true;
    return false;
  }

  const StageOps& stage_;
  const OpTime& time_;
  StageRoom room_;
  std::vector<remat::TensorId> id_;    ///< by stage tensor
  std::vector<remat::OpId> launched_;  ///< by transfer
  std::vector<Range> ranges_;
  std::vector<double> times_;          ///< by operator [s]
  std::vector<remat::LinkUse> links_;  ///< likewise
  std::vector<remat::OpSpec> specs_;
  remat::OpId first_backward_ = 0;
  StageGraph result_;
};

}  // namespace

StageGraph stage_graph(const StageOps& stage, const std::string& name, const OpTime& time,
                       const StageRoom& room) {
  return GraphBuilder(stage, time, room).run(name);
}

}  // namespace tessera
