#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/engine/communicators.h"
#include "sim/engine/device_load.h"
#include "sim/engine/link_users.h"
#include "sim/engine/platform.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// A ring whose members pass pieces of `bytes` on, hop by hop.
struct ChunkRing {
  std::vector<PathId> hops;  ///< from every member to the next
  double bytes = 0;          ///< of one piece
};

/// What one collective or message costs: `delay`, then a flow of `bytes` over `path`, or `steps`
/// rounds of pieces along every ring.
struct Transfer {
  Seconds delay;
  double bytes = 0;  ///< over each link of the path
  PathId path;       ///< not valid: no flow, the delay is everything
  std::vector<ChunkRing> rings = {};
  int steps = 0;         ///< 0: no rings
  DeviceLoad load = {};  ///< on each of the GPUs that take part
};

/// Every transfer that a program can start, with the links it takes. Made before the run, because
/// SimGrid's platform is fixed then. A transfer whose links nobody else uses gets its closed form
/// (latency + bytes / slowest link) as delay and no flow: an event instead of a fluid.
class CommunicationPlan {
 public:
  explicit CommunicationPlan(const TimedProgram& timed);

  const Communicators& communicators() const { return communicators_; }
  const std::vector<std::vector<LinkId>>& paths() const { return paths_; }

  /// Both throw std::out_of_range for a transfer that the program does not contain.
  const Transfer& collective(int communicator, OpKind kind, Bytes bytes) const {
    return collectives_.at({communicator, kind, bytes.value()});
  }
  const Transfer& message(int from_rank, int to_rank, Bytes bytes) const {
    return messages_.at({from_rank, to_rank, bytes.value()});
  }

 private:
  void plan_collective(const TimedProgram& timed, const ProgramOp& op, int rank);
  void plan_message(const TimedProgram& timed, const ProgramOp& op, int rank);
  Transfer make_transfer(const TimedProgram& timed, const CollectiveCost& cost,
                         const CollectiveCall& call, const std::vector<int>& ranks);
  Transfer make_flow(Seconds latency, double bytes, const std::vector<LinkId>& links);
  Transfer make_chunks(const TimedProgram& timed, const CollectiveCost& cost, Bytes bytes,
                       const std::vector<int>& ranks);
  void add_users(const Transfer& transfer, const LinkUser& user);
  PathId path_over(const std::vector<LinkId>& links);
  void use_closed_form_on_private_links(const Topology& topology, Transfer& transfer) const;

  Communicators communicators_;
  LinkUsers users_;
  std::vector<std::vector<LinkId>> paths_;
  std::map<std::vector<LinkId>, PathId> path_of_links_;
  std::map<std::tuple<int, OpKind, std::int64_t>, Transfer> collectives_;
  std::map<std::tuple<int, int, std::int64_t>, Transfer> messages_;
};

}  // namespace tessera
