#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/communication/transfer_maker.h"
#include "sim/engine/folding/folding.h"
#include "sim/engine/folding/node_orbits.h"
#include "sim/engine/network/communicators.h"
#include "sim/engine/network/link_paths.h"
#include "sim/engine/network/transfer.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// Every transfer that a program can start, with the links it takes. Made before the run, because
/// SimGrid's platform is fixed then. A transfer whose links nobody else uses gets its closed form
/// (bytes / slowest link) and no flow: an event instead of a fluid. Symmetric
/// ranks are folded at the end. `used_by_others`: links of the topology over which jobs beside this
/// one send, whose ranks must not fold.
class CommunicationPlan {
 public:
  explicit CommunicationPlan(const TimedProgram& timed,
                             std::span<const LinkId> used_by_others = {});

  const Communicators& communicators() const { return communicators_; }
  const Folding& folding() const { return folding_; }
  const PlannedNetwork& network() const { return network_; }

  /// The paths are those from number `first` on of a larger network.
  void number_paths_from(int first);

  /// The transfer that op `op` (a collective, send or copy) of `stage` starts on `rank`.
  const PlannedTransfer& of(int rank, int stage, std::int32_t op) const {
    const std::int32_t number =
        numbers_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(op)];
    return transfers_[of_rank_[first_of_rank_[static_cast<std::size_t>(rank)] +
                               static_cast<std::size_t>(number)]];
  }
  /// The copy of `bytes` that memory pressure can start on `rank`, of a stage that has such
  /// tensors. No op of the program starts it.
  const PlannedTransfer& pressure_copy(int rank, int stage, OpKind kind, Bytes bytes) const;
  /// Members of the communicator that are simulated, or stand for some.
  int simulated_members(int communicator) const {
    return simulated_members_[static_cast<std::size_t>(communicator)];
  }

  /// Both look through all transfers, and throw std::out_of_range for one that the program does
  /// not contain.
  const Transfer& collective(int communicator, OpKind kind, Bytes bytes) const;
  const Transfer& message(int from_rank, int to_rank, Bytes bytes) const;

 private:
  using Positions = std::vector<std::uint32_t>;  ///< in transfers_

  void plan_transfers(const TimedProgram& timed);
  std::vector<ProgramOp> plan_pressure_copies(const TimedProgram& timed, int stage, int first);
  std::uint32_t plan_transfer(const TimedProgram& timed, const ProgramOp& op, int rank);
  std::uint32_t plan_collective(const TimedProgram& timed, const ProgramOp& op, int rank);
  std::uint32_t plan_copy(const TimedProgram& timed, const ProgramOp& op, int rank);
  std::uint32_t plan_message(const TimedProgram& timed, const ProgramOp& op, int rank);
  std::uint32_t find_or_add(Positions& known, PlannedTransfer wanted, const LinkUser& user,
                            auto&& make);
  void fold(const TimedProgram& timed);
  void limit_paths_of_collectives();
  void count_simulated_members();

  NodeOrbits orbits_;
  TransferMaker maker_;
  Communicators communicators_;
  std::vector<PlannedTransfer> transfers_;
  std::vector<Positions> of_communicator_;
  std::vector<Positions> of_sender_;                ///< messages and copies, by rank
  std::vector<std::vector<std::int32_t>> numbers_;  ///< by stage and op: among distinct transfers
  std::vector<std::map<std::pair<OpKind, Bytes>, std::int32_t>> pressure_numbers_;  ///< by stage
  std::vector<std::size_t> first_of_rank_;
  Positions of_rank_;  ///< by rank and number
  Folding folding_;
  PlannedNetwork network_;
  std::vector<int> simulated_members_;  ///< by communicator
};

}  // namespace tessera
