#include "sim/engine/communication/transfer_maker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/collectives/chunk_schedule.h"

namespace tessera {
namespace {

/// Larger groups would take thousands of thousands of pieces.
constexpr std::size_t kMostChunkedRanks = 64;

BytesPerSecond slowest_of(const Topology& topology, std::span<const LinkId> links) {
  BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
  for (const LinkId id : links) slowest = std::min(slowest, topology.link(id).bandwidth);
  return slowest;
}

}  // namespace

TransferMaker::TransferMaker(const TimedProgram& timed, const NodeOrbits& orbits)
    : timed_(timed), orbits_(orbits), costs_(timed), users_(timed.topology.links().size()) {}

Transfer TransferMaker::of(const CollectiveCall& call, const std::vector<int>& ranks,
                           bool ring_shift) {
  const NetworkFidelity fidelity = timed_.collectives.fidelity;
  const TransferCost cost = costs_.of(call, timed_.program.gpus_of(ranks), ring_shift);
  if (fidelity == NetworkFidelity::analytic) {
    return {.delay = cost.latency, .moving = cost.solo_time - cost.latency, .load = cost.load};
  }
  Transfer transfer;
  if (fidelity == NetworkFidelity::chunk) transfer = chunks(call, ranks);
  if (transfer.hops.empty()) transfer = flow(cost.latency, cost.bytes_per_link, cost.links);
  transfer.load = cost.load;
  return transfer;
}

Transfer TransferMaker::flow(Route route, Bytes bytes) {
  return flow(route.latency, static_cast<double>(bytes.value()), std::move(route.links));
}

Transfer TransferMaker::flow(Seconds latency, double bytes, std::vector<LinkId> links) {
  std::erase_if(links, [&](LinkId link) { return !orbits_.is_planned(link); });
  if (bytes <= 0 || links.empty()) return {.delay = latency};
  return {.delay = latency,
          .bytes = bytes,
          .path = path_over(links),
          .rate = slowest_of(timed_.topology, links)};
}

PathId TransferMaker::path_over(const std::vector<LinkId>& links) {
  Color hash = links.size();
  for (const LinkId link : links) hash = mixed_color(hash, static_cast<Color>(link.index()));
  const auto [begin, end] = path_of_links_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    if (links_on(known->second) == links) return known->second;
  }
  const PathId next(static_cast<int>(paths_.size()));
  path_of_links_.emplace(hash, next);
  paths_.push_back(links);
  return next;
}

Transfer TransferMaker::chunks(const CollectiveCall& call, const std::vector<int>& ranks) {
  const Topology& topology = timed_.topology;
  if (ranks.size() < 2 || ranks.size() > kMostChunkedRanks || call.bytes <= Bytes(0)) return {};
  const std::vector<int> gpus = timed_.program.gpus_of(ranks);
  const CollectiveCost cost = collective_cost(topology, call, gpus, timed_.collectives.tuning());
  const auto schedule = chunk_schedule(topology, call, cost, gpus);
  if (!schedule) return {};
  Transfer transfer{.delay = std::max(Seconds(0), cost.latency - schedule->fill)};
  for (const ChunkMove& move : schedule->moves) {
    ChunkHop hop{.path = {}, .pieces = move.pieces, .waits = move.waits};
    if (move.bytes > 0) {
      hop.path = path_over(links_of(topology, move));
      hop.bytes = move.bytes / cost.protocol_share;
    }
    transfer.hops.push_back(std::move(hop));
  }
  return transfer;
}

void TransferMaker::add_user(const Transfer& transfer, const LinkUser& user) {
  for (const ChunkHop& hop : transfer.hops) {
    if (hop.path.valid()) users_.add(links_on(hop.path), user);
  }
  if (transfer.path.valid()) users_.add(links_on(transfer.path), user);
}

void TransferMaker::use_closed_form_on_private_links(Transfer& transfer) const {
  if (!transfer.path.valid() || users_.any_shared(links_on(transfer.path))) return;
  transfer.moving = Seconds(transfer.bytes / transfer.rate.value());
  transfer.path = {};
}

std::vector<std::vector<LinkId>> TransferMaker::take_paths() {
  path_of_links_.clear();
  return std::exchange(paths_, {});
}

}  // namespace tessera
