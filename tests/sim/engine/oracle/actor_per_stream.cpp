#include "tests/sim/engine/oracle/actor_per_stream.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/rings/ring_shift.h"
#include "sim/engine/network/communicators.h"
#include "sim/simgrid/platform.h"
#include "sim/simgrid/simgrid_session.h"

namespace tessera::test {
namespace {

namespace s4u = simgrid::s4u;

/// Something that happens once and that any number of actors may wait for, before or after.
class Event {
 public:
  void happen() { semaphore_->release(); }
  void wait() {
    semaphore_->acquire();
    semaphore_->release();  // for the next who waits
  }

 private:
  s4u::SemaphorePtr semaphore_ = s4u::Semaphore::create(0);
};

void sleep(Seconds time) {
  if (time > Seconds(0)) s4u::this_actor::sleep_for(time.value());
}

/// Members of one collective.
struct Meeting {
  std::size_t joined = 0;
  Seconds all_joined;
  Event ended;
};

/// One op of one rank, with the network it uses.
struct OracleOp {
  const ProgramOp* op = nullptr;
  std::int32_t sequence = -1;  ///< number among the collectives of its group
  Seconds latency;
  double bytes = 0;
  Event launched;
  Event left_queue;  ///< it runs, or its last kernel does
  Event ended;
  OpRecord record;
};

class Oracle {
 public:
  explicit Oracle(const TimedProgram& timed);
  Timeline run();

 private:
  void add_rank(int rank);
  void set_transfer(OracleOp& op, int rank);
  int stage_of(int rank) const { return position_of(rank, layout_).pipeline; }
  int peer(int rank, int stage) const;

  void host(int rank);
  void stream(int rank, StreamKind kind);
  void await_turn(const OracleOp& op, std::deque<OracleOp>& ops);
  void execute(OracleOp& op, int rank);
  void collective(OracleOp& op, int rank);
  void transfer(const OracleOp& op);

  const TimedProgram& timed_;
  const ParallelLayout& layout_;
  Communicators communicators_;
  std::unique_ptr<s4u::Engine> engine_ = start_simgrid();
  std::vector<std::deque<OracleOp>> ranks_;
  std::vector<std::vector<LinkId>> paths_;  ///< one per op of every rank
  std::map<const OracleOp*, PathId> path_of_;
  std::map<std::pair<int, std::int32_t>, Meeting> meetings_;  ///< by communicator and sequence
  std::map<std::tuple<int, int, int>, Event> messages_;       ///< by sender, receiver and tag
  std::unique_ptr<LinkPaths> link_paths_;
  std::unique_ptr<Platform> platform_;
};

Oracle::Oracle(const TimedProgram& timed)
    : timed_(timed), layout_(timed.program.layout), communicators_(layout_) {
  for (int rank = 0; rank < layout_.world_size(); ++rank) add_rank(rank);
  link_paths_ = std::make_unique<LinkPaths>(timed.topology.links(), paths_);
  platform_ = std::make_unique<Platform>(*link_paths_, layout_.world_size());
}

void Oracle::add_rank(int rank) {
  std::deque<OracleOp>& ops = ranks_.emplace_back();
  std::map<GroupKind, std::int32_t> next_in_group;
  for (const ProgramOp& op : timed_.program.stages[static_cast<std::size_t>(stage_of(rank))].ops) {
    OracleOp& added = ops.emplace_back();
    added.op = &op;
    added.record.op = static_cast<std::int32_t>(ops.size()) - 1;
    if (is_collective(op.kind)) added.sequence = next_in_group[op.group]++;
    set_transfer(added, rank);
  }
}

void Oracle::set_transfer(OracleOp& op, int rank) {
  std::vector<LinkId> links;
  if (is_collective(op.op->kind)) {
    const int communicator = communicators_.index_of(rank, op.op->group);
    const std::vector<int>& ranks = communicators_[communicator].ranks;
    const CollectiveCost cost =
        op.op->kind == OpKind::ring_shift
            ? ring_shift_cost(timed_.topology, op.op->bytes, ranks, CollectiveTuning())
            : collective_cost(timed_.topology, collective_kind_of(op.op->kind), op.op->bytes,
                              ranks);
    op.latency = cost.latency;
    op.bytes = cost.bytes_per_link;
    links = cost.links;
  }
  if (op.op->kind == OpKind::send) {
    const Route route = timed_.topology.route(rank, peer(rank, op.op->peer_stage));
    op.latency = route.latency;
    op.bytes = static_cast<double>(op.op->bytes.value());
    links = route.links;
  }
  if (links.empty()) op.bytes = 0;
  path_of_[&op] = PathId(static_cast<int>(paths_.size()));
  paths_.push_back(links);
}

int Oracle::peer(int rank, int stage) const {
  RankPosition position = position_of(rank, layout_);
  position.pipeline = stage;
  return rank_of(position, layout_);
}

void Oracle::host(int rank) {
  for (OracleOp& op : ranks_[static_cast<std::size_t>(rank)]) {
    const bool is_segment = op.op->kind == OpKind::kernels;
    const auto segment = static_cast<std::size_t>(std::max(0, op.op->segment.index()));
    sleep(is_segment ? timed_.segments[segment].host_time : timed_.communication_host_time);
    op.launched.happen();
    const bool segment_sync = is_segment && timed_.program.segments[segment].host_sync;
    if (op.op->host_sync || segment_sync) op.ended.wait();
  }
}

void Oracle::stream(int rank, StreamKind kind) {
  std::deque<OracleOp>& ops = ranks_[static_cast<std::size_t>(rank)];
  for (OracleOp& op : ops) {
    if (op.op->stream != kind) continue;
    op.launched.wait();
    for (const std::int32_t awaited : op.op->waits) {
      if (awaited >= 0) ops[static_cast<std::size_t>(awaited)].ended.wait();
    }
    if (timed_.single_hardware_queue && !is_copy(op.op->kind)) await_turn(op, ops);
    op.record.start = Seconds(s4u::Engine::get_clock());
    op.record.transfer_start = op.record.start;
    if (op.op->kind != OpKind::kernels) op.left_queue.happen();
    execute(op, rank);
    op.record.end = Seconds(s4u::Engine::get_clock());
    op.ended.happen();
  }
}

void Oracle::await_turn(const OracleOp& op, std::deque<OracleOp>& ops) {
  for (OracleOp& ahead : ops) {
    if (&ahead == &op) return;
    if (!is_copy(ahead.op->kind)) ahead.left_queue.wait();
  }
}

void Oracle::execute(OracleOp& op, int rank) {
  switch (op.op->kind) {
    case OpKind::kernels: {
      const auto& kernels =
          timed_.segments[static_cast<std::size_t>(op.op->segment.index())].kernel_durations;
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (i + 1 == kernels.size()) op.left_queue.happen();
        sleep(kernels[i]);
      }
      break;
    }
    case OpKind::send:
      transfer(op);
      messages_[{rank, peer(rank, op.op->peer_stage), op.op->tag}].happen();
      break;
    case OpKind::recv:
      messages_[{peer(rank, op.op->peer_stage), rank, op.op->tag}].wait();
      break;
    case OpKind::copy_out:
    case OpKind::copy_in:
      transfer(op);
      break;
    default:
      collective(op, rank);
  }
}

void Oracle::collective(OracleOp& op, int rank) {
  const int communicator = communicators_.index_of(rank, op.op->group);
  Meeting& meeting = meetings_[{communicator, op.sequence}];
  if (++meeting.joined == communicators_[communicator].ranks.size()) {
    meeting.all_joined = Seconds(s4u::Engine::get_clock());
    transfer(op);
    meeting.ended.happen();
  } else {
    meeting.ended.wait();
  }
  op.record.transfer_start = meeting.all_joined;
}

void Oracle::transfer(const OracleOp& op) {
  sleep(op.latency);
  if (op.bytes <= 0) return;
  s4u::Host* host = &platform_->path_host(path_of_.at(&op));
  const double parts = std::max(1.0, std::round(op.bytes)) * Platform::kPartsOfByte;
  s4u::Comm::sendto(host, host, static_cast<std::uint64_t>(parts));
}

Timeline Oracle::run() {
  for (int rank = 0; rank < layout_.world_size(); ++rank) {
    s4u::Host* gpu = &platform_->gpu_host(rank);
    s4u::Actor::create("host", gpu, [this, rank] { host(rank); });
    for (int kind = 0; kind < kStreamCount; ++kind) {
      const auto stream_kind = static_cast<StreamKind>(kind);
      s4u::Actor::create("stream", gpu, [this, rank, stream_kind] { stream(rank, stream_kind); });
    }
  }
  engine_->run();
  Timeline timeline;
  for (const std::deque<OracleOp>& ops : ranks_) {
    for (const OracleOp& op : ops) {
      timeline.ops.push_back(op.record);
      timeline.step_time = std::max(timeline.step_time, op.record.end);
    }
  }
  return timeline;
}

}  // namespace

Timeline simulate_with_actor_per_stream(const TimedProgram& timed) {
  return Oracle(timed).run();
}

}  // namespace tessera::test
