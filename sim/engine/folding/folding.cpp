#include "sim/engine/folding/folding.h"

#include <bit>
#include <cassert>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "sim/engine/folding/fold_refusal.h"

namespace tessera {
namespace {

/// No kind of group.
constexpr Color kNotPlanned = 1000;

/// Equal for values that differ in the rounding of their last bits.
Color bits(double value) {
  constexpr Color kRounding = 1U << 12U;
  return (std::bit_cast<Color>(value) + kRounding / 2) / kRounding;
}

/// What tells a rank apart before anyone asks whom it talks to.
Color first_color(int rank, const TimedProgram& timed) {
  const FoldSettings& fold = timed.simulation.fold;
  const RankPosition at = position_of(rank, timed.program.layout);
  const auto gpus = timed.topology.cluster().node.gpu_count;
  const RankPace pace = timed.paces.of(rank);
  const auto program = static_cast<Color>(timed.program.program_number(rank));
  Color color = mixed_color(program, static_cast<Color>(pace.table + 1));
  color = mixed_color(color, bits(pace.slowdown));
  if (!fold.tensor) color = mixed_color(color, static_cast<Color>(at.tensor) + 1);
  if (!fold.data) color = mixed_color(color, static_cast<Color>(at.data) + 1);
  if (!fold.data) color = mixed_color(color, static_cast<Color>(at.context) + 1);
  const int gpu = timed.program.gpu_of(rank);
  if (!fold.rails) color = mixed_color(color, static_cast<Color>(gpu % gpus) + 1);
  return color;
}

Color first_color(const PlannedTransfer& planned, std::size_t number) {
  const Transfer& transfer = planned.transfer;
  Color color = mixed_color(static_cast<Color>(planned.kind), static_cast<Color>(planned.group));
  color = mixed_color(color, static_cast<Color>(planned.bytes.value()));
  color = mixed_color(color, bits(transfer.delay.value()));
  color = mixed_color(color, bits(transfer.moving.value()));
  color = mixed_color(color, bits(transfer.bytes));
  color = mixed_color(color, bits(transfer.load.multiprocessors));
  color = mixed_color(color, bits(transfer.load.bandwidth));
  // Pieces would have to be told apart one by one; such transfers stay as they are.
  return transfer.hops.empty() ? color : mixed_color(color, number + 1);
}

/// Ranks are numbered as in `orbits.planned()`.
SymmetryGraph graph_of(const TimedProgram& timed, const NodeOrbits& orbits,
                       const Communicators& communicators,
                       const std::vector<PlannedTransfer>& transfers, const PlannedNetwork& whole) {
  SymmetryGraph graph;
  for (const int rank : orbits.planned()) graph.ranks.push_back(first_color(rank, timed));
  for (const Link& link : whole.links) graph.links.push_back(bits(link.bandwidth.value()));
  const auto member = [&](int rank, std::uint32_t role) {
    const int position = orbits.position(rank);
    if (position < 0) return;
    graph.members.add(static_cast<std::uint32_t>(position) * SymmetryGraph::kRoles + role);
  };
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const PlannedTransfer& planned = transfers[i];
    graph.transfers.push_back(first_color(planned, i));
    if (planned.communicator < 0) {
      member(planned.from, 0);
      member(planned.to, 1);
    } else {
      for (const int rank : communicators[planned.communicator].ranks) member(rank, 2);
    }
    graph.members.end_list();
    if (planned.transfer.path.valid()) {
      for (const LinkId link :
           whole.paths[static_cast<std::size_t>(planned.transfer.path.index())]) {
        graph.crossed.add(static_cast<std::uint32_t>(link.index()));
      }
    }
    graph.crossed.end_list();
  }
  return graph;
}

/// The members of every class: the first one stands for the class.
class Classes {
 public:
  explicit Classes(std::span<const Color> colors) {
    for (std::size_t i = 0; i < colors.size(); ++i) {
      const auto [entry, is_new] = of_color_.try_emplace(colors[i], sizes_.size());
      if (is_new) {
        first_.push_back(i);
        sizes_.push_back(0);
      }
      ++sizes_[entry->second];
      class_.push_back(entry->second);
    }
  }

  std::size_t count() const { return first_.size(); }
  std::size_t of(std::size_t member) const { return class_[member]; }
  std::size_t first(std::size_t index) const { return first_[index]; }
  std::int64_t size(std::size_t index) const { return sizes_[index]; }

 private:
  std::unordered_map<Color, std::size_t> of_color_;
  std::vector<std::size_t> class_;  // by member
  std::vector<std::size_t> first_;  // by class, ascending
  std::vector<std::int64_t> sizes_;
};

/// Communicators whose members have the same classes are met at the first of them.
std::vector<int> fold_communicators(const NodeOrbits& orbits, const Communicators& communicators,
                                    std::span<const Color> ranks) {
  std::vector<Color> colors(communicators.all().size(), 0);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const int own : communicators.of(orbits.planned()[i])) {
      if (own >= 0) colors[static_cast<std::size_t>(own)] += mixed_color(ranks[i], 0);
    }
  }
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const auto kind = static_cast<Color>(communicators.all()[i].kind);
    // Those without a planned rank stand for themselves; nobody meets there.
    colors[i] = colors[i] == 0 ? mixed_color(i, kNotPlanned) : mixed_color(colors[i], kind);
  }
  const Classes classes(colors);
  std::vector<int> first;
  for (std::size_t i = 0; i < colors.size(); ++i) {
    first.push_back(static_cast<int>(classes.first(classes.of(i))));
  }
  return first;
}

/// One path for every class of transfers.
class FoldedPaths {
 public:
  FoldedPaths(const SymmetryGraph& graph, const PlannedNetwork& whole)
      : graph_(graph), whole_(whole), transfers_(graph.transfers), links_(graph.links) {}

  PlannedNetwork fold(std::vector<PlannedTransfer>& transfers) {
    crossings_.resize(transfers_.count());
    for (std::size_t i = 0; i < transfers_.count(); ++i) crossings_[i] = crossings_of(i);
    find_common_divisors();
    for (std::size_t i = 0; i < links_.count(); ++i) {
      network_.links.push_back(whole_.links[links_.first(i)]);
      Link& link = network_.links.back();
      link.bandwidth = link.bandwidth / static_cast<double>(divisors_[i]);
    }
    std::vector<PathId> path_of_class(transfers_.count());
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      Transfer& transfer = transfers[i].transfer;
      if (!transfer.path.valid()) continue;
      PathId& path = path_of_class[transfers_.of(i)];
      if (!path.valid()) path = add_path(transfers_.of(i));
      transfer.path = path;
    }
    return std::move(network_);
  }

 private:
  /// How many transfers of the class cross one link of another class, by class of links.
  using Crossings = std::vector<std::pair<std::size_t, std::int64_t>>;

  Crossings crossings_of(std::size_t transfer_class) const {
    std::unordered_map<std::size_t, std::size_t> position;
    Crossings crossings;
    for (const std::uint32_t link : graph_.crossed[transfers_.first(transfer_class)]) {
      const std::size_t link_class = links_.of(link);
      const auto [entry, is_new] = position.try_emplace(link_class, crossings.size());
      if (is_new) crossings.emplace_back(link_class, 0);
      ++crossings[entry->second].second;
    }
    for (auto& [link_class, count] : crossings) {
      // Every transfer of the class crosses `count` links of that class; so many cross each link.
      const std::int64_t all = count * transfers_.size(transfer_class);
      assert(all % links_.size(link_class) == 0);
      count = all / links_.size(link_class);
    }
    return crossings;
  }

  void find_common_divisors() {
    divisors_.assign(links_.count(), 0);
    for (const Crossings& crossings : crossings_) {
      for (const auto& [link_class, count] : crossings) {
        divisors_[link_class] = std::gcd(divisors_[link_class], count);
      }
    }
  }

  PathId add_path(std::size_t transfer_class) {
    std::vector<LinkId> links;
    for (const auto& [link_class, count] : crossings_[transfer_class]) {
      const LinkId link(static_cast<std::int32_t>(link_class));
      links.insert(links.end(), static_cast<std::size_t>(count / divisors_[link_class]), link);
    }
    network_.paths.push_back(std::move(links));
    return PathId(static_cast<std::int32_t>(network_.paths.size()) - 1);
  }

  const SymmetryGraph& graph_;
  const PlannedNetwork& whole_;
  Classes transfers_;
  Classes links_;
  std::vector<Crossings> crossings_;    // by class of transfers
  std::vector<std::int64_t> divisors_;  // by class of links: of all counts
  PlannedNetwork network_;
};

}  // namespace

PlannedNetwork without_unused_links(const Topology& topology,
                                    std::vector<std::vector<LinkId>> paths) {
  PlannedNetwork network;
  std::vector<LinkId> position(topology.links().size());
  for (std::vector<LinkId>& path : paths) {
    for (LinkId& link : path) {
      LinkId& found = position[static_cast<std::size_t>(link.index())];
      if (!found.valid()) {
        found = LinkId(static_cast<std::int32_t>(network.links.size()));
        network.links.emplace_back();  // its name would cost more than all the rest
        network.links.back().bandwidth = topology.link(link).bandwidth;
        network.in_topology.push_back(link);
      }
      link = found;
    }
  }
  network.paths = std::move(paths);
  return network;
}

Folding unfolded(int ranks) {
  Folding folding;
  folding.simulated.resize(static_cast<std::size_t>(ranks));
  std::iota(folding.simulated.begin(), folding.simulated.end(), 0);
  return folding;
}

FoldedJob fold_job(const TimedProgram& timed, const NodeOrbits& orbits,
                   const Communicators& communicators, std::vector<PlannedTransfer>& transfers,
                   const std::vector<std::vector<LinkId>>& paths) {
  const int world_size = timed.program.layout.world_size();
  PlannedNetwork whole = without_unused_links(timed.topology, paths);
  SymmetryGraph graph = graph_of(timed, orbits, communicators, transfers, whole);
  refine(graph);
  const Classes ranks(graph.ranks);
  FoldedJob job{.folding = {}, .network = {}};
  job.folding.ranks.refused = fold_refusals(timed, orbits, communicators, transfers, graph);
  if (static_cast<int>(ranks.count()) == world_size) {
    job.folding.simulated = unfolded(world_size).simulated;
    job.network = std::move(whole);
    return job;
  }
  for (std::size_t i = 0; i < ranks.count(); ++i) {
    job.folding.simulated.push_back(orbits.planned()[ranks.first(i)]);
  }
  for (int rank = 0; rank < world_size; ++rank) {
    const auto position = static_cast<std::size_t>(orbits.position(orbits.of(rank)));
    job.folding.ranks.representative.push_back(orbits.planned()[ranks.first(ranks.of(position))]);
  }
  job.folding.communicator = fold_communicators(orbits, communicators, graph.ranks);
  job.network = FoldedPaths(graph, whole).fold(transfers);
  return job;
}

}  // namespace tessera
