#include "sim/engine/neighbour_network.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace tessera {
namespace {

constexpr FoldSettings kNoFolds{.tensor = false, .data = false, .rails = false};

/// Links of the topology that a job may use.
std::vector<LinkId> links_used_by(const TimedProgram& timed) {
  TimedProgram rank_by_rank = timed;
  rank_by_rank.simulation.fold = kNoFolds;
  return CommunicationPlan(rank_by_rank).network().in_topology;
}

std::vector<LinkId> links_of_several(const std::vector<std::vector<LinkId>>& used,
                                     std::size_t links) {
  std::vector<int> users(links);
  for (const std::vector<LinkId>& of_job : used) {
    for (const LinkId link : of_job) ++users[static_cast<std::size_t>(link.index())];
  }
  std::vector<LinkId> shared;
  for (std::size_t i = 0; i < links; ++i) {
    if (users[i] > 1) shared.emplace_back(static_cast<std::int32_t>(i));
  }
  return shared;
}

/// Puts the networks of jobs together: links that several of them cross are one.
class NetworkUnion {
 public:
  NetworkUnion(const std::vector<LinkId>& shared, std::size_t jobs) {
    for (const LinkId link : shared) {
      position_of_[link.index()] = static_cast<int>(all_.contended.size());
      all_.contended.push_back({.link = link,
                                .bandwidth = {},
                                .bytes = std::vector<double>(jobs),
                                .busy = {},
                                .together = {}});
      all_.network.links.emplace_back();
    }
  }

  void add(const TimedProgram& timed, std::span<const LinkId> used_by_others, int job) {
    CommunicationPlan& plan = all_.plans.emplace_back(timed, used_by_others);
    const PlannedNetwork& own = plan.network();
    const std::vector<LinkId> renamed = positions_of_links(own);
    const auto first = static_cast<int>(all_.network.paths.size());
    for (std::size_t i = 0; i < own.paths.size(); ++i) {
      add_path(own.paths[i], renamed);
      all_.network.has_limit.push_back(own.has_limit[i]);
      all_.job_of_path.push_back(job);
    }
    plan.number_paths_from(first);
  }

  NeighbourNetwork take() { return std::move(all_); }

 private:
  std::vector<LinkId> positions_of_links(const PlannedNetwork& own) {
    std::vector<LinkId> positions;
    for (std::size_t i = 0; i < own.links.size(); ++i) {
      const auto shared = own.in_topology.empty() ? position_of_.end()
                                                  : position_of_.find(own.in_topology[i].index());
      if (shared == position_of_.end()) {
        positions.emplace_back(static_cast<std::int32_t>(all_.network.links.size()));
        all_.network.links.push_back(own.links[i]);
      } else {
        positions.emplace_back(shared->second);
        narrow(static_cast<std::size_t>(shared->second), own.links[i]);
      }
    }
    return positions;
  }

  void narrow(std::size_t position, const Link& seen) {
    Link& link = all_.network.links[position];
    if (link.bandwidth.value() <= 0 || seen.bandwidth < link.bandwidth) link = seen;
    all_.contended[position].bandwidth = link.bandwidth;
  }

  void add_path(const std::vector<LinkId>& path, const std::vector<LinkId>& renamed) {
    std::vector<LinkId> links;
    std::vector<int> contended;
    for (const LinkId link : path) {
      links.push_back(renamed[static_cast<std::size_t>(link.index())]);
      const int position = links.back().index();
      if (position < static_cast<int>(all_.contended.size())) contended.push_back(position);
    }
    all_.network.paths.push_back(std::move(links));
    all_.contended_on_path.push_back(std::move(contended));
  }

  NeighbourNetwork all_;
  std::map<int, int> position_of_;  ///< of shared links, by number in the topology
};

}  // namespace

NeighbourNetwork neighbour_network(std::vector<TimedProgram>& jobs) {
  std::vector<std::vector<LinkId>> used;
  for (const TimedProgram& timed : jobs) used.push_back(links_used_by(timed));
  const std::vector<LinkId> shared = links_of_several(used, jobs.front().topology.links().size());
  NetworkUnion network(shared, jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const bool meets_others = std::ranges::any_of(
        used[i], [&](LinkId link) { return std::ranges::binary_search(shared, link); });
    if (meets_others) jobs[i].simulation.fold = kNoFolds;
    network.add(jobs[i], meets_others ? std::span(shared) : std::span<const LinkId>(),
                static_cast<int>(i));
  }
  return network.take();
}

}  // namespace tessera
