#pragma once

#include <span>
#include <vector>

#include "sim/engine/folding/node_orbits.h"
#include "sim/engine/folding/symmetry.h"
#include "sim/engine/network/communicators.h"
#include "sim/engine/network/transfer.h"
#include "sim/plan/timed_program.h"
#include "sim/trace/rank_folding.h"

namespace tessera {

/// A transfer that some rank of the job can start, with those who take part.
struct PlannedTransfer {
  Transfer transfer;  ///< its path is a position in the list of paths
  OpKind kind = OpKind::send;
  GroupKind group = GroupKind::tensor;
  Bytes bytes;
  StreamKind first_stream = StreamKind::compute;  ///< of those that it is started on
  int communicator = -1;                          ///< of collectives
  int from = -1;                                  ///< of messages
  int to = -1;
};

/// The links that a simulation has to know, each with the rate that is left for the transfers that
/// are simulated, and the paths over them, in positions of `links`.
struct PlannedNetwork {
  std::vector<Link> links;
  std::vector<std::vector<LinkId>> paths;
  std::vector<bool> has_limit = {};  ///< by path: FlowNetwork::limit() can slow its flows
  /// By link: which one of the topology it is; empty where links stand for several.
  std::vector<LinkId> in_topology = {};
};

/// Who is simulated, and where those meet for whom others stand.
struct Folding {
  std::vector<int> simulated;  ///< ranks, ascending
  RankFolding ranks;
  std::vector<int> communicator;  ///< by communicator: which stands for it; empty: each for itself

  int communicator_of(int own) const {
    return communicator.empty() ? own : communicator[static_cast<std::size_t>(own)];
  }
};

/// The links that `paths` cross; the paths change to positions in their list.
PlannedNetwork without_unused_links(const Topology& topology,
                                    std::vector<std::vector<LinkId>> paths);

/// Every rank for itself.
Folding unfolded(int ranks);

/// Folds ranks that `timed.simulation.fold` allows to fold and that do provably the same at the
/// same times (symmetry.h). Transfers of one class get one path, over one link for every class of
/// links. What the flows of those who are not simulated would take of a link is missing from its
/// rate, so that the others take their time as in the whole job.
struct FoldedJob {
  Folding folding;
  PlannedNetwork network;
};
FoldedJob fold_job(const TimedProgram& timed, const NodeOrbits& orbits,
                   const Communicators& communicators, std::vector<PlannedTransfer>& transfers,
                   const std::vector<std::vector<LinkId>>& paths);

}  // namespace tessera
