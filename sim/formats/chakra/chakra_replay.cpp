#include "sim/formats/chakra/chakra_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "hw/units/input_error.h"
#include "sim/collectives/measured_fabric.h"
#include "sim/formats/chakra/chakra_messages.h"
#include "sim/formats/chakra/chakra_queues.h"
#include "sim/formats/foreign_trace.h"

namespace tessera {
namespace {

using namespace chakra;

/// Part of the step that a node belongs to, as far as its name tells.
Phase phase_of(const std::string& name) {
  const std::pair<const char*, Phase> words[] = {
      {"optimizer", Phase::optimizer}, {"adam", Phase::optimizer}, {"backward", Phase::backward},
      {"Backward", Phase::backward},   {"bwd", Phase::backward},   {"loss", Phase::loss}};
  for (const auto& [word, phase] : words) {
    if (name.find(word) != std::string::npos) return phase;
  }
  return Phase::forward;
}

OpKind kind_of(CollectiveType type) {
  switch (type) {
    case kAllGather:
      return OpKind::all_gather;
    case kReduce:  // moves what a broadcast moves, the other way
    case kBroadcast:
      return OpKind::broadcast;
    case kAllToAll:
      return OpKind::all_to_all;
    case kReduceScatter:
    case kReduceScatterBlock:
      return OpKind::reduce_scatter;
    default:
      return OpKind::all_reduce;
  }
}

class Replay {
 public:
  Replay(const ChakraJob& job, const ReplaySettings& settings)
      : job_(job),
        gpu_(settings.cluster.node.gpu),
        settings_(settings),
        messages_(job),
        timed_{.program = {},
               .segments = {},
               .topology = Topology(
                   measured_fabric(settings.cluster, settings.collectives.tuning()).cluster),
               .communication_host_time = {},
               .memory_capacity = gpu_.memory,
               .collectives = settings.collectives} {
    program().layout.pipeline = static_cast<int>(job.ranks.size());
    const CollectiveTuning tuning = settings.collectives.tuning();
    const std::vector<GroupCalibration> slow =
        calibrations_of(measured_fabric(settings.cluster, tuning), tuning);
    std::vector<GroupCalibration>& groups = timed_.collectives.groups;
    groups.insert(groups.end(), slow.begin(), slow.end());
  }

  ChakraReplay build() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) add_rank(static_cast<int>(rank));
    const std::vector<Problem>& unmatched = messages_.problems();
    problems_.insert(problems_.end(), unmatched.begin(), unmatched.end());
    if (!problems_.empty()) throw InputError(problems_);
    return {.timed = std::move(timed_), .notes = notes()};
  }

 private:
  Program& program() { return timed_.program; }

  void add_rank(int rank) {
    const ChakraTrace& trace = job_.ranks[static_cast<std::size_t>(rank)];
    const ChakraQueues queues = queue_nodes(trace);
    added_orders_ += queues.added_orders;
    RankProgram& stage = program().stages.emplace_back();
    stage.stage = rank;
    std::vector<std::int32_t> op_of(queues.nodes.size());
    for (std::size_t i = 0; i < queues.nodes.size(); ++i) {
      const QueuedNode& queued = queues.nodes[i];
      std::vector<std::int32_t> waits;
      for (const std::size_t wait : queued.waits) waits.push_back(op_of[wait]);
      ProgramOp op = op_of_node(trace.nodes[queued.node], rank, trace);
      op.stream = queued.stream;
      add_joins(stage, op, waits);
      std::ranges::copy(waits, op.waits.begin());
      op_of[i] = static_cast<std::int32_t>(stage.ops.size());
      stage.ops.push_back(op);
    }
  }

  /// An op waits for two others at most: more are awaited before it by ops of no duration.
  void add_joins(RankProgram& stage, const ProgramOp& op, std::vector<std::int32_t>& waits) {
    while (waits.size() > op.waits.size()) {
      ProgramOp join{.stream = op.stream, .phase = op.phase, .waits = {waits[0], waits[1]}};
      join.segment = segment_of({.name = "dependencies"}, op.phase);
      stage.ops.push_back(join);
      waits.erase(waits.begin(), waits.begin() + 2);
    }
  }

  ProgramOp op_of_node(const ChakraNode& node, int rank, const ChakraTrace& trace) {
    ProgramOp op{.phase = phase_of(node.name), .bytes = node.bytes};
    op.host_sync = node.host_sync;
    switch (node.type) {
      case kCompute:
        op.segment = segment_of(node, op.phase);
        return op;
      case kLoad:
      case kStore:
        op.kind = node.type == kLoad ? OpKind::copy_in : OpKind::copy_out;
        op.bytes = Bytes(node.tensor_bytes);
        break;
      case kCollective:
        make_collective(node, rank, trace, op);
        break;
      default:
        op.kind = node.type == kSend ? OpKind::send : OpKind::recv;
        op.peer_stage = static_cast<std::int32_t>(node.peer);
        op.tag = messages_.number_of(node, rank);
    }
    Seconds& host_time = timed_.communication_host_time;
    host_time = std::max(host_time, node.host_time);
    return op;
  }

  void make_collective(const ChakraNode& node, int rank, const ChakraTrace& trace, ProgramOp& op) {
    op.kind = kind_of(node.collective);
    op.group = GroupKind::listed;
    op.listed_group = group_of(node, rank, trace);
    if (op.listed_group < 0) return;
    const auto& ranks = program().listed_groups[static_cast<std::size_t>(op.listed_group)];
    // The trace counts what every rank gives, a program the gathered buffer.
    if (op.kind == OpKind::all_gather)
      op.bytes = op.bytes * static_cast<std::int64_t>(ranks.size());
    if (node.collective == kBarrier) op.bytes = Bytes(1);
    reduces_ += node.collective == kReduce ? 1 : 0;
    if (node.collective == kGather || node.collective == kScatter)
      fail(trace, node, "is a gather or scatter, which no collective of Tessera stands for",
           "write it as sends and receives");
  }

  /// Position in the listed groups; -1: a problem.
  std::int32_t group_of(const ChakraNode& node, int rank, const ChakraTrace& trace) {
    const auto [known, is_new] = number_of_group_.try_emplace(node.group, -1);
    if (is_new) known->second = add_group(node, trace);
    if (known->second < 0) return -1;
    const auto& ranks = program().listed_groups[static_cast<std::size_t>(known->second)];
    if (std::ranges::binary_search(ranks, rank)) return known->second;
    fail(trace, node, "runs in group \"" + node.group + "\", which does not hold its rank",
         "correct the groups file");
    return -1;
  }

  std::int32_t add_group(const ChakraNode& node, const ChakraTrace& trace) {
    std::vector<int> ranks(job_.ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    if (!node.group.empty()) {
      const auto found = job_.groups.find(node.group);
      if (found == job_.groups.end()) {
        fail(trace, node, "runs in group \"" + node.group + "\", which the groups file lacks",
             "give the groups with --groups FILE: {\"1\": [0, 1], ...}");
        return -1;
      }
      ranks = found->second;
    }
    if (ranks.back() >= static_cast<int>(job_.ranks.size())) {
      fail(trace, node,
           "runs in group \"" + node.group + "\" with rank " + std::to_string(ranks.back()) +
               ", which has no trace",
           "give a trace of every rank");
      return -1;
    }
    program().listed_groups.push_back(std::move(ranks));
    return static_cast<std::int32_t>(program().listed_groups.size()) - 1;
  }

  /// What the node takes alone; with work and no duration, the roofline's time.
  Seconds duration_of(const ChakraNode& node) {
    if (node.duration > Seconds(0) || node.operations + node.tensor_bytes == 0)
      return node.duration;
    ++rooflines_;
    const Seconds memory = Bytes(node.tensor_bytes) / gpu_.memory_bandwidth;
    const FlopsPerSecond peak = gpu_.peak(settings_.precision);
    if (peak.value() <= 0)
      throw InputError({"--precision " + std::string(name_of(settings_.precision)),
                        gpu_.id + " has no peak of it, and some nodes have no duration",
                        "choose another one"});
    return std::max(memory, Flops(static_cast<double>(node.operations)) / peak);
  }

  SegmentId segment_of(const ChakraNode& node, Phase phase) {
    const Seconds duration = duration_of(node);
    const double share = duration > Seconds(0) ? std::min(1.0, node.product_time / duration) : 0.0;
    const auto next = static_cast<std::int32_t>(program().segments.size());
    const auto [known, is_new] = segments_.try_emplace(
        std::tuple(node.name, duration.value(), node.host_time.value(), share), next);
    if (is_new) {
      program().segments.push_back({.name = node.name, .phase = phase});
      timed_.segments.push_back(
          {.duration = duration, .host_time = node.host_time, .product_share = share});
    }
    return SegmentId(known->second);
  }

  void fail(const ChakraTrace& trace, const ChakraNode& node, std::string what, std::string hint) {
    constexpr std::size_t kMostProblems = 20;
    if (problems_.size() < kMostProblems)
      problems_.push_back({trace.file + ": node of id " + std::to_string(node.id), std::move(what),
                           std::move(hint)});
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    const auto note = [&](int count, const std::string& what) {
      if (count > 0) notes.push_back(std::to_string(count) + " " + what);
    };
    note(rooflines_, "nodes have work and no duration: time of the roofline in " +
                         std::string(name_of(settings_.precision)));
    note(reduces_, "reduces are simulated as broadcasts");
    note(added_orders_,
         "communications wait behind others that the trace does not put before them");
    return notes;
  }

  const ChakraJob& job_;
  const GpuSpec& gpu_;
  const ReplaySettings& settings_;
  ChakraMessages messages_;
  TimedProgram timed_;
  std::vector<Problem> problems_;
  std::map<std::string, std::int32_t> number_of_group_;
  std::map<std::tuple<std::string, double, double, double>, std::int32_t> segments_;
  int rooflines_ = 0, reduces_ = 0, added_orders_ = 0;
};

}  // namespace

ChakraJob read_chakra_job(const std::filesystem::path& prefix,
                          const std::filesystem::path& groups_file) {
  namespace fs = std::filesystem;
  ChakraJob job;
  const auto file = [&](std::size_t rank) {
    return fs::path(prefix.string() + "." + std::to_string(rank) + ".et");
  };
  if (fs::is_regular_file(prefix)) refuse_json_trace(prefix);
  if (fs::is_regular_file(file(0))) refuse_json_trace(file(0));
  while (fs::exists(file(job.ranks.size())))
    job.ranks.push_back(read_chakra(file(job.ranks.size())));
  if (job.ranks.empty())
    throw InputError({file(0).string(), "does not exist",
                      "give the PREFIX of traces PREFIX.0.et, PREFIX.1.et, ..."});
  const fs::path beside = prefix.string() + ".groups.json";
  if (!groups_file.empty()) {
    job.groups = read_chakra_groups(groups_file);
  } else if (fs::exists(beside)) {
    job.groups = read_chakra_groups(beside);
  }
  return job;
}

ChakraReplay replay_chakra(const ChakraJob& job, const ReplaySettings& settings) {
  return Replay(job, settings).build();
}

}  // namespace tessera
