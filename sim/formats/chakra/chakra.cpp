#include "sim/formats/chakra/chakra.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include "hw/units/replace_file.h"
#include "sim/formats/chakra/chakra.pb.h"
#include "sim/formats/chakra/chakra_schema.h"
#include "workloads/program/labels.h"
#include "workloads/program/process_groups.h"

namespace tessera {
namespace {

using namespace chakra;

using GroupOf = std::pair<GroupKind, GroupCoordinates>;

/// Every group that some collective runs over, numbered from 1.
class Groups {
 public:
  explicit Groups(const TimedProgram& timed) {
    const ParallelLayout& layout = timed.program.layout;
    std::array<bool, kGroupKindCount> used{};
    for (const RankProgram& stage : timed.program.stages) {
      for (const ProgramOp& op : stage.ops)
        used[static_cast<std::size_t>(op.group)] |= is_collective(op.kind);
    }
    for (int kind = 0; kind < kGroupKindCount; ++kind) {
      if (used[static_cast<std::size_t>(kind)]) add(static_cast<GroupKind>(kind), layout);
    }
  }

  std::string name(int rank, GroupKind kind, const ParallelLayout& layout) const {
    return std::to_string(1 + numbers_.at({kind, group_key(rank, kind, layout)}));
  }
  const std::vector<int>& members(int rank, GroupKind kind, const ParallelLayout& layout) const {
    return members_[numbers_.at({kind, group_key(rank, kind, layout)})];
  }
  const std::vector<std::vector<int>>& all() const { return members_; }

 private:
  void add(GroupKind kind, const ParallelLayout& layout) {
    for (int rank = 0; rank < layout.world_size(); ++rank) {
      if (!is_group_member(rank, kind, layout)) continue;
      const auto [place, is_new] =
          numbers_.emplace(GroupOf{kind, group_key(rank, kind, layout)}, members_.size());
      if (is_new) members_.emplace_back();
      members_[place->second].push_back(rank);
    }
  }

  std::map<GroupOf, std::size_t> numbers_;
  std::vector<std::vector<int>> members_;
};

CollectiveType collective_type(OpKind kind) {
  switch (kind) {
    case OpKind::all_gather:
      return kAllGather;
    case OpKind::broadcast:
      return kBroadcast;
    case OpKind::all_to_all:
      return kAllToAll;
    case OpKind::reduce_scatter:
      return kReduceScatter;
    default:
      return kAllReduce;
  }
}

/// Puts `message` behind its length, as streams of messages are stored.
void append(std::string& file, const google::protobuf::MessageLite& message) {
  google::protobuf::io::StringOutputStream stream(&file);
  google::protobuf::util::SerializeDelimitedToZeroCopyStream(message, &stream);
}

/// A node under construction.
class Node {
 public:
  Node(std::uint64_t id, std::string_view name, NodeType type) {
    node_.set_id(id);
    node_.set_name(std::string(name));
    node_.set_type(type);
    named("is_cpu_op").set_as_bool(false);
  }

  void depends_on(std::uint64_t id) { node_.add_data_deps(id); }
  void duration(Seconds time) {
    node_.set_duration_micros(std::llround(time.value() * 1e6));
    nanoseconds("duration_ns", time);
  }
  void nanoseconds(std::string_view name, Seconds time) {
    integer(name, std::llround(time.value() * 1e9));
  }
  void integer(std::string_view name, std::int64_t value) { named(name).set_as_int64(value); }
  void text(std::string_view name, std::string_view value) {
    named(name).set_as_string(std::string(value));
  }
  std::string finish() const {
    std::string bytes;
    append(bytes, node_);
    return bytes;
  }

 private:
  wire::Attribute& named(std::string_view name) {
    wire::Attribute& attribute = *node_.add_attributes();
    attribute.set_name(std::string(name));
    return attribute;
  }

  wire::Node node_;
};

/// The nodes of one rank. Op n is node 2 n + 1; the second node of a ring shift is the next one.
class RankTrace {
 public:
  RankTrace(const TimedProgram& timed, const Groups& groups, int rank)
      : timed_(timed),
        layout_(timed.program.layout),
        groups_(groups),
        rank_(rank),
        program_(timed.program.program_of(rank)) {
    last_of_stream_.fill(-1);
  }

  std::string write(const std::string& version) {
    wire::Metadata metadata;
    metadata.set_version(version);
    std::string file;
    append(file, metadata);
    for (std::size_t op = 0; op < program_.ops.size(); ++op) file += nodes_of(static_cast<int>(op));
    return file;
  }

 private:
  std::string nodes_of(int number) {
    const ProgramOp& op = program_.ops[static_cast<std::size_t>(number)];
    std::string nodes;
    if (op.kind == OpKind::kernels) {
      nodes = compute(number, op);
    } else if (op.kind == OpKind::ring_shift) {
      nodes = shift(number, op);
    } else if (is_collective(op.kind)) {
      nodes = collective(number, op);
    } else if (is_copy(op.kind)) {
      Node copy = started(number, op, op.kind == OpKind::copy_out ? kStore : kLoad);
      copy.integer("tensor_size", op.bytes.value());
      nodes = copy.finish();
    } else {
      nodes = message(number, op);
    }
    last_of_stream_[static_cast<std::size_t>(op.stream)] = number;
    return nodes;
  }

  static std::uint64_t id_of(int number) { return 2 * static_cast<std::uint64_t>(number) + 1; }

  std::string_view name_of(const ProgramOp& op) const {
    if (op.kind != OpKind::kernels) return label_of(op.kind);
    return timed_.program.segments[static_cast<std::size_t>(op.segment.index())].name;
  }

  /// A node with the dependencies of its op: what it waits for, and the op before it on its stream.
  Node started(int number, const ProgramOp& op, NodeType type, int second = 0) {
    Node node(id_of(number) + static_cast<std::uint64_t>(second), name_of(op), type);
    depend(node, last_of_stream_[static_cast<std::size_t>(op.stream)]);
    for (const std::int32_t wait : op.waits) depend(node, wait);
    if (op.kind != OpKind::kernels) node.nanoseconds("host_ns", timed_.host_time_of(op));
    if (host_waits_for(op)) node.integer("host_sync", 1);
    return node;
  }

  bool host_waits_for(const ProgramOp& op) const {
    return op.host_sync ||
           (op.kind == OpKind::kernels && timed_.program.segment(op.segment).host_sync);
  }

  void depend(Node& node, int number) const {
    if (number < 0) return;
    node.depends_on(id_of(number));
    const bool is_pair = program_.ops[static_cast<std::size_t>(number)].kind == OpKind::ring_shift;
    if (is_pair) node.depends_on(id_of(number) + 1);
  }

  std::string compute(int number, const ProgramOp& op) {
    const auto& segment = timed_.program.segments[static_cast<std::size_t>(op.segment.index())];
    Flops flops;
    Bytes bytes;
    for (const KernelLaunch& launch : segment.kernels) {
      flops += launch.kernel.flops;
      bytes += launch.kernel.bytes();
    }
    Node node = started(number, op, kCompute);
    const Seconds duration = timed_.duration_of(rank_, number, op.segment);
    const auto& alone = timed_.segments[static_cast<std::size_t>(op.segment.index())];
    node.duration(duration);
    node.nanoseconds("product_ns", alone.product_share * duration);
    node.nanoseconds("host_ns", alone.host_time);
    node.integer("num_ops", static_cast<std::int64_t>(flops.value()));
    node.integer("tensor_size", bytes.value());
    return node.finish();
  }

  std::string collective(int number, const ProgramOp& op) {
    Node node = started(number, op, kCollective);
    node.integer("comm_type", collective_type(op.kind));
    node.integer("comm_size", given_bytes(op));
    node.text("pg_name", groups_.name(rank_, op.group, layout_));
    return node.finish();
  }

  /// ASTRA-sim counts what every rank gives: of an all-gather its part of the gathered buffer.
  /// Source: astra-sim/system/astraccl/native_collectives/collective_algorithm/Ring.cc
  std::int64_t given_bytes(const ProgramOp& op) const {
    if (op.kind != OpKind::all_gather) return op.bytes.value();
    const auto ranks = static_cast<std::int64_t>(groups_.members(rank_, op.group, layout_).size());
    return (op.bytes.value() + ranks - 1) / ranks;
  }

  std::string transfer(int number, const ProgramOp& op, NodeType type, int peer, int tag,
                       int second = 0) {
    Node node = started(number, op, type, second);
    node.integer("comm_size", op.bytes.value());
    node.integer("comm_src", type == kSend ? rank_ : peer);
    node.integer("comm_dst", type == kSend ? peer : rank_);
    node.integer("comm_tag", tag);
    return node.finish();
  }

  std::string message(int number, const ProgramOp& op) {
    RankPosition peer = position_of(rank_, layout_);
    peer.pipeline = op.peer_stage;
    return transfer(number, op, op.kind == OpKind::send ? kSend : kRecv, rank_of(peer, layout_),
                    op.tag);
  }

  /// Tags of shifts lie behind those of messages.
  std::string shift(int number, const ProgramOp& op) {
    constexpr int kFirstTag = 1 << 30;
    const std::vector<int>& ring = groups_.members(rank_, op.group, layout_);
    const auto size = ring.size();
    const auto at =
        static_cast<std::size_t>(std::find(ring.begin(), ring.end(), rank_) - ring.begin());
    const int tag = kFirstTag + number;
    return transfer(number, op, kSend, ring[(at + 1) % size], tag) +
           transfer(number, op, kRecv, ring[(at + size - 1) % size], tag, 1);
  }

  const TimedProgram& timed_;
  const ParallelLayout& layout_;
  const Groups& groups_;
  int rank_;
  const RankProgram& program_;
  std::array<int, kStreamCount> last_of_stream_{};
};

std::string groups_text(const Groups& groups) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < groups.all().size(); ++i)
    object[std::to_string(i + 1)] = groups.all()[i];
  return object.dump() + "\n";
}

}  // namespace

void write_chakra(const std::filesystem::path& prefix, const TimedProgram& timed,
                  const std::string& version) {
  const Groups groups(timed);
  for (int rank = 0; rank < timed.program.layout.world_size(); ++rank) {
    replace_file(prefix.string() + "." + std::to_string(rank) + ".et",
                 RankTrace(timed, groups, rank).write(version));
  }
  replace_file(prefix.string() + ".groups.json", groups_text(groups));
}

}  // namespace tessera
