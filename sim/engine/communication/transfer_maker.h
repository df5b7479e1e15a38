#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/engine/communication/link_users.h"
#include "sim/engine/communication/transfer_costs.h"
#include "sim/engine/folding/node_orbits.h"
#include "sim/engine/folding/symmetry.h"
#include "sim/engine/network/transfer.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// Makes the transfers of a job: what each costs, and the path it takes. Transfers over the same
/// links share a path. Knows who uses each link.
class TransferMaker {
 public:
  /// Both have to outlive it.
  TransferMaker(const TimedProgram& timed, const NodeOrbits& orbits);

  /// A collective or message of NCCL among `ranks`, as the job's fidelity has it: a delay, a flow,
  /// or pieces hop by hop. `ring_shift`: every rank sends `call.bytes` to the next.
  Transfer of(const CollectiveCall& call, const std::vector<int>& ranks, bool ring_shift = false);
  /// `bytes` over `route`.
  Transfer flow(Route route, Bytes bytes);

  /// Other jobs may use `links`.
  void share(std::span<const LinkId> links) {
    for (const LinkId link : links) users_.share(link);
  }
  /// `user` may start `transfer`.
  void add_user(const Transfer& transfer, const LinkUser& user);
  /// Once all users are known: no flow for a transfer that meets none on its links.
  void use_closed_form_on_private_links(Transfer& transfer) const;

  /// In links of the topology, by PathId. No transfer can be made any more.
  std::vector<std::vector<LinkId>> take_paths();

 private:
  Transfer flow(Seconds latency, double bytes, std::vector<LinkId> links);
  /// Without hops for what is not simulated piece by piece.
  Transfer chunks(const CollectiveCall& call, const std::vector<int>& ranks);
  PathId path_over(const std::vector<LinkId>& links);
  const std::vector<LinkId>& links_on(PathId path) const {
    return paths_[static_cast<std::size_t>(path.index())];
  }

  const TimedProgram& timed_;
  const NodeOrbits& orbits_;
  TransferCosts costs_;
  LinkUsers users_;
  std::vector<std::vector<LinkId>> paths_;
  std::unordered_multimap<Color, PathId> path_of_links_;  ///< by hash
};

}  // namespace tessera
