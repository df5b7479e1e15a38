#include "sim/engine/folding/fold_refusal.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "hw/units/text.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

using Ranks = std::pair<int, int>;

class Refusals {
 public:
  Refusals(const TimedProgram& timed, const NodeOrbits& orbits, const Communicators& communicators,
           const std::vector<PlannedTransfer>& transfers, const SymmetryGraph& graph)
      : timed_(timed),
        orbits_(orbits),
        communicators_(communicators),
        transfers_(transfers),
        graph_(graph) {}

  std::vector<FoldRefusal> find() const {
    std::vector<FoldRefusal> refusals;
    const FoldSettings& fold = timed_.simulation.fold;
    const auto check = [&](bool wanted, const char* name, int RankPosition::*coordinate) {
      if (!wanted) return;
      if (const auto ranks = first_difference(coordinate)) {
        refusals.push_back({name, reason(*ranks)});
      }
    };
    check(fold.tensor, "tensor", &RankPosition::tensor);
    check(fold.data, "data", &RankPosition::data);
    check(fold.data, "context", &RankPosition::context);
    return refusals;
  }

 private:
  /// The first rank that does not do what the first one of its group does.
  std::optional<Ranks> first_difference(int RankPosition::*coordinate) const {
    const ParallelLayout& layout = timed_.program.layout;
    for (const int rank : orbits_.planned()) {
      RankPosition first = position_of(rank, layout);
      first.*coordinate = 0;
      const int other = orbits_.of(rank_of(first, layout));
      if (color(rank) != color(other)) return Ranks{other, rank};
    }
    return std::nullopt;
  }

  Color color(int rank) const {
    return graph_.ranks[static_cast<std::size_t>(orbits_.position(rank))];
  }

  /// Positions of the transfers that a rank takes part in; equal ranks list equal ones.
  std::vector<std::size_t> transfers_of(int rank) const {
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const PlannedTransfer& planned = transfers_[i];
      const bool member = planned.communicator < 0 ? planned.from == rank || planned.to == rank
                                                   : communicators_.index_of(rank, planned.group) ==
                                                         planned.communicator;
      if (member) list.push_back(i);
    }
    // Planned in the order in which they were met, which is not the same for all ranks.
    std::ranges::stable_sort(list, {}, [this](std::size_t i) {
      const PlannedTransfer& planned = transfers_[i];
      return std::tuple(planned.kind, planned.group, planned.bytes);
    });
    return list;
  }

  std::string reason(const Ranks& ranks) const {
    const std::string pair =
        "GPU " + std::to_string(ranks.first) + " and GPU " + std::to_string(ranks.second) + ": ";
    if (!timed_.simulation.fold.rails) {
      const int gpus = timed_.topology.cluster().node.gpu_count;
      const int first = timed_.program.gpu_of(ranks.first) % gpus;
      if (first != timed_.program.gpu_of(ranks.second) % gpus)
        return pair + "the fold of rails is off";
    }
    if (timed_.program.program_number(ranks.first) != timed_.program.program_number(ranks.second))
      return pair + "their replicas run different programs";
    const RankPace one = timed_.paces.of(ranks.first);
    const RankPace other = timed_.paces.of(ranks.second);
    if (one.table != other.table) return pair + "they are GPUs of different kinds";
    if (one.slowdown != other.slowdown) return pair + "one of them is slowed down";
    const std::vector<std::size_t> a = transfers_of(ranks.first);
    const std::vector<std::size_t> b = transfers_of(ranks.second);
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const std::string difference = difference_of(a[i], b[i]);
      if (!difference.empty()) return pair + difference;
    }
    return pair + "they communicate with GPUs that do different things";
  }

  std::string name_of(const PlannedTransfer& planned) const {
    if (planned.communicator < 0) return "their messages between stages";
    return "their collectives in " + std::string(label_of(planned.group)) + " groups";
  }

  /// Empty where both look alike.
  std::string difference_of(std::size_t a, std::size_t b) const {
    const PlannedTransfer& one = transfers_[a];
    const PlannedTransfer& other = transfers_[b];
    const Transfer& first = one.transfer;
    const Transfer& second = other.transfer;
    if (one.kind != other.kind || one.group != other.group) return "";
    if (!first.hops.empty())
      return name_of(one) + " are simulated piece by piece (fidelity: chunk)";
    const Seconds first_time = first.delay + first.moving;
    const Seconds second_time = second.delay + second.moving;
    if (first_time != second_time) {
      return name_of(one) + " take different ways (" + to_text(first_time) + " and " +
             to_text(second_time) + " besides shared links)";
    }
    if (first.bytes != second.bytes || first.path.valid() != second.path.valid()) {
      return name_of(one) + " load their links differently";
    }
    if (links_of(a) != links_of(b)) {
      return name_of(one) + " meet different traffic on links that they share" + hint();
    }
    return "";
  }

  /// What makes alike what routes over several spines tell apart.
  std::string hint() const {
    if (timed_.topology.cluster().fabric.spines <= 1) return "";
    return "; if the fabric routes adaptively, cluster.fabric.spines: 1 says so and lets them fold";
  }

  std::vector<Color> links_of(std::size_t transfer) const {
    std::vector<Color> colors;
    for (const std::uint32_t link : graph_.crossed[transfer]) colors.push_back(graph_.links[link]);
    std::ranges::sort(colors);
    return colors;
  }

  const TimedProgram& timed_;
  const NodeOrbits& orbits_;
  const Communicators& communicators_;
  const std::vector<PlannedTransfer>& transfers_;
  const SymmetryGraph& graph_;
};

}  // namespace

std::vector<FoldRefusal> fold_refusals(const TimedProgram& timed, const NodeOrbits& orbits,
                                       const Communicators& communicators,
                                       const std::vector<PlannedTransfer>& transfers,
                                       const SymmetryGraph& graph) {
  return Refusals(timed, orbits, communicators, transfers, graph).find();
}

}  // namespace tessera
