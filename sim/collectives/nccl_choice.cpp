#include "sim/collectives/nccl_choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>

#include "hw/units/input_error.h"
#include "sim/collectives/collective_names.h"

namespace tessera {
namespace {

using Algorithm = CollectiveAlgorithm;
using Protocol = CollectiveProtocol;
constexpr std::array kProtocols = {Protocol::ll, Protocol::ll128, Protocol::simple};

// search.cc: speeds of a channel in GB/s, per generation, inside a node.
constexpr std::array kSpeeds = {40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0,
                                9.0,  7.0,  6.0,  5.0,  4.0,  3.0};
constexpr std::array kSpeedsHopper = {60.0, 50.0, 40.0, 30.0, 24.0, 20.0,
                                      15.0, 12.0, 11.0, 6.0,  3.0};
constexpr std::array kSpeedsBlackwell = {90.0, 80.0, 70.0, 60.0, 50.0, 45.0,
                                         40.0, 30.0, 24.0, 20.0, 19.0, 18.0};

/// Channels that the search lays at most, before it doubles them.
constexpr double kSearchedChannels = 16;

/// tuning.cc: share of the links that NVLS reaches.
constexpr double kNvlsEfficiencyHopper = 0.85;
constexpr double kNvlsEfficiencyBlackwell = 0.74;
constexpr double kNvlsLatency = 25;            // us
constexpr double kNvlsTreeNetworkStep = 20.9;  // us

/// tuning.cc: what a tree reaches of the search's rate, and of that each protocol.
constexpr double kTreeShare = 0.92;
constexpr double kTreeLlDivisor = 3.8;
constexpr double kTreeLl128InNode = 7.0 / 9.0;
constexpr double kTreeLl128BetweenNodes = 120.0 / 128.0;
constexpr double kRingLl128Share = 0.92;
constexpr double kPatShare = 0.75;

/// tuning.cc: treeCorrectionFactor, by log2 of bytes / 64.
constexpr int kCorrections = 24;
using Corrections = std::array<double, kCorrections>;
constexpr std::array<Corrections, 3> kTreeCorrection = {{
    {1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5,
     0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6,
     0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0, 1.0},
    {0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5,
     0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9},
}};

// tuning.cc of NCCL 2.8: most that it expects of an A100's bus, and of trees, on up to two nodes
// and on more; recalled.
constexpr double kOldAmpereBus = 235;
constexpr double kOldTree = 110, kOldTreeLl128 = 130;
constexpr double kOldTreeManyNodes = 80, kOldTreeLl128ManyNodes = 105;

double gigabytes(BytesPerSecond rate) {
  return rate.value() / 1e9;
}

template <class Speeds>
double most_of(const Speeds& speeds, double links) {
  double most = 0;
  for (const double speed : speeds) {
    const double channels = std::min(std::floor(links / speed + 1e-9), kSearchedChannels);
    most = std::max(most, channels * speed);
  }
  return most > 0 ? most : links;
}

double nvls_speed(double links, int heads, Architecture architecture) {
  const auto fits = [&](double speed) { return speed * heads <= links * (1 + 1e-9); };
  const auto first = [&](const auto& speeds) {
    const auto found = std::ranges::find_if(speeds, fits);
    return found == speeds.end() ? 0.0 : *found;
  };
  return architecture >= Architecture::blackwell ? first(kSpeedsBlackwell) : first(kSpeedsHopper);
}

bool has_nvls(const RingShape& shape) {
  const bool nvidia = shape.architecture < Architecture::cdna1;
  return nvidia && shape.over_switch && shape.architecture >= Architecture::hopper &&
         shape.gpus_per_node > 2 && shape.ranks == shape.gpus_per_node * shape.nodes;
}

/// Rate of the search over all nodes. Between two nodes a tree crosses the network once where a
/// ring crosses it twice. The old tuner took two nodes for one.
BytesPerSecond graph_bandwidth(const RingShape& shape, const CollectiveCall& call,
                               double network_factor) {
  const BytesPerSecond inside = searched_bandwidth(shape.inside_bandwidth, shape.architecture);
  const bool old = call.tuner == NcclTuner::v2_8;
  if (old && shape.nodes <= 2) return std::min(inside, BytesPerSecond(kOldAmpereBus * 1e9));
  if (shape.nodes == 1) return inside;
  return std::min(inside, shape.network_bandwidth * network_factor);
}

Seconds transfer(Bytes bytes, double gigabytes_per_second) {
  return Seconds(static_cast<double>(bytes.value()) / (gigabytes_per_second * 1e9));
}

Seconds ring_latency(const RingShape& shape, CollectiveKind kind, Protocol protocol) {
  for (const ProtocolPrice& price : protocol_prices(shape, kind)) {
    if (price.protocol == protocol) return price.latency;
  }
  return Seconds(0);
}

NcclExpectation ring_expectation(const RingShape& shape, const CollectiveCall& call,
                                 Protocol protocol) {
  const double bus = gigabytes(graph_bandwidth(shape, call, 1));
  double rate = bus;
  if (protocol == Protocol::ll) rate = std::min(0.5 * bus, gigabytes(ll_cap(shape)));
  if (protocol == Protocol::ll128) rate = kRingLl128Share * bus;
  const double traffic = static_cast<double>(ring_steps(call.kind, shape.ranks)) / shape.ranks;
  return {Algorithm::ring, protocol, ring_latency(shape, call.kind, protocol),
          transfer(call.bytes, rate / traffic)};
}

double tree_correction(Protocol protocol, Bytes bytes) {
  const auto units = static_cast<std::uint64_t>(bytes.value() >> 6);
  const int position = units == 0 ? 0 : static_cast<int>(std::bit_width(units)) - 1;
  if (position >= kCorrections) return 1;
  return kTreeCorrection[static_cast<std::size_t>(protocol)][static_cast<std::size_t>(position)];
}

double old_tree_cap(int nodes, Protocol protocol) {
  if (nodes > 2) return protocol == Protocol::ll128 ? kOldTreeLl128ManyNodes : kOldTreeManyNodes;
  return protocol == Protocol::ll128 ? kOldTreeLl128 : kOldTree;
}

NcclExpectation tree_expectation(const RingShape& shape, const CollectiveCall& call,
                                 Protocol protocol) {
  const LatencyTerms terms = tree_latency_terms(protocol, shape);
  const bool old = call.tuner == NcclTuner::v2_8;
  const double crossings = shape.nodes == 2 && !old ? 2 : 1;
  double rate = kTreeShare * gigabytes(graph_bandwidth(shape, call, crossings));
  if (old) rate = std::min(rate, old_tree_cap(shape.nodes, protocol));
  if (protocol == Protocol::ll) rate = std::min(rate / kTreeLlDivisor, gigabytes(ll_cap(shape)));
  if (protocol == Protocol::ll128)
    rate *= shape.nodes == 1 ? kTreeLl128InNode : kTreeLl128BetweenNodes;
  rate *= 0.5 * tree_correction(protocol, call.bytes);
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(shape.nodes))) - 1;
  const Seconds latency = terms.base + terms.inside * (2.0 * (shape.gpus_per_node - 1)) +
                          (terms.between + terms.nic) * (2.0 * levels);
  return {Algorithm::tree, protocol, latency, transfer(call.bytes, rate)};
}

void add_switch_expectations(const RingShape& shape, const CollectiveCall& call,
                             std::vector<NcclExpectation>& list) {
  if (!call.reduces_in_switch || call.kind != CollectiveKind::all_reduce) return;
  const double nvls = gigabytes(nvls_bandwidth(shape));
  if (shape.nodes == 1 && nvls > 0) {
    list.push_back({Algorithm::nvls, Protocol::simple, microseconds(kNvlsLatency),
                    transfer(call.bytes, nvls)});
  }
  const double tree = gigabytes(nvls_tree_bandwidth(shape));
  if (tree <= 0) return;
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(shape.nodes))) - 1;
  const Seconds latency = microseconds(kNvlsLatency + 2 * levels * kNvlsTreeNetworkStep);
  list.push_back({Algorithm::nvls_tree, Protocol::simple, latency, transfer(call.bytes, tree)});
}

void add_pat_expectation(const RingShape& shape, const CollectiveCall& call,
                         std::vector<NcclExpectation>& list) {
  const bool scatters =
      call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::reduce_scatter;
  if (!scatters || shape.nodes < 2 || shape.ranks != shape.nodes) return;
  const double rate = kPatShare * gigabytes(graph_bandwidth(shape, call, 1));
  const double latency = 8 + std::log2(shape.nodes) * 14 / 3.5 + 2.8 * shape.ranks;
  list.push_back(
      {Algorithm::pat, Protocol::simple, microseconds(latency), transfer(call.bytes, rate)});
}

/// What the user names although NCCL's tuner would not compare it.
std::optional<NcclExpectation> named_choice(const RingShape& shape, const CollectiveCall& call) {
  if (ring_steps(call.kind, 2) == 0)
    return {{Algorithm::pairwise, Protocol::simple, Seconds(0), Seconds(0)}};
  if (!call.algorithm) return std::nullopt;
  const bool reduce = call.kind == CollectiveKind::all_reduce;
  const bool collnet =
      *call.algorithm == Algorithm::collnet_direct || *call.algorithm == Algorithm::collnet_chain;
  const bool possible =
      (collnet && reduce && shape.nodes > 1) ||
      (*call.algorithm == Algorithm::pat && !reduce && call.kind != CollectiveKind::broadcast) ||
      (*call.algorithm == Algorithm::hierarchical && call.kind != CollectiveKind::broadcast);
  if (!possible) return std::nullopt;
  return {{*call.algorithm, call.protocol.value_or(Protocol::simple), Seconds(0), Seconds(0)}};
}

Problem not_run(const RingShape& shape, const CollectiveCall& call) {
  const std::string algorithm(call.algorithm ? name_of(*call.algorithm) : "any algorithm");
  const std::string protocol(call.protocol ? name_of(*call.protocol) : "any protocol");
  return {.where = "",
          .what = "NCCL does not run " + std::string(name_of(call.kind)) + " with " + algorithm +
                  " and " + protocol + " on " + std::to_string(shape.ranks) + " GPUs in " +
                  std::to_string(shape.nodes) + " nodes of this kind",
          .hint = "leave algorithm and protocol to the tuner, or take ring with simple"};
}

}  // namespace

BytesPerSecond searched_bandwidth(BytesPerSecond links, Architecture architecture) {
  const double rate = gigabytes(links);
  if (architecture == Architecture::hopper)
    return BytesPerSecond(most_of(kSpeedsHopper, rate) * 1e9);
  const bool blackwell =
      architecture == Architecture::blackwell || architecture == Architecture::blackwell_ultra;
  if (blackwell) return BytesPerSecond(most_of(kSpeedsBlackwell, rate) * 1e9);
  return BytesPerSecond(most_of(kSpeeds, rate) * 1e9);
}

BytesPerSecond nvls_bandwidth(const RingShape& shape) {
  if (!has_nvls(shape)) return BytesPerSecond(0);
  const int heads = shape.gpus_per_node;
  const double efficiency = shape.architecture >= Architecture::blackwell ? kNvlsEfficiencyBlackwell
                                                                          : kNvlsEfficiencyHopper;
  const double speed = nvls_speed(gigabytes(shape.inside_bandwidth), heads, shape.architecture);
  const double bus = speed * efficiency * (heads - 1) * 2;
  return BytesPerSecond(bus * 1e9 * heads / (2.0 * (heads - 1)));
}

BytesPerSecond nvls_tree_bandwidth(const RingShape& shape) {
  if (!has_nvls(shape) || shape.nodes < 2) return BytesPerSecond(0);
  // tuning.cc: perChMaxNVLSTreeBws, two nodes and more
  const bool blackwell = shape.architecture >= Architecture::blackwell;
  const double cap = shape.nodes == 2 ? (blackwell ? 96 : 57.7) : (blackwell ? 80 : 45.5);
  const double network = gigabytes(shape.network_bandwidth) * (shape.nodes == 2 ? 2 : 1);
  const double bus = std::min(shape.gpus_per_node * cap, network);
  return BytesPerSecond(bus * 1e9 * shape.ranks / (2.0 * (shape.ranks - 1)));
}

std::vector<NcclExpectation> nccl_expectations(const RingShape& shape, const CollectiveCall& call) {
  std::vector<NcclExpectation> list;
  if (ring_steps(call.kind, 2) == 0) return list;
  for (const Protocol protocol : kProtocols) {
    if (!protocol_enabled(protocol, shape)) continue;
    list.push_back(ring_expectation(shape, call, protocol));
    if (call.kind == CollectiveKind::all_reduce)
      list.push_back(tree_expectation(shape, call, protocol));
  }
  add_switch_expectations(shape, call, list);
  add_pat_expectation(shape, call, list);
  return list;
}

NcclExpectation nccl_choice(const RingShape& shape, const CollectiveCall& call) {
  return nccl_candidates(shape, call).front();
}

std::vector<NcclExpectation> nccl_candidates(const RingShape& shape, const CollectiveCall& call) {
  if (const auto named = named_choice(shape, call)) return {*named};
  std::vector<NcclExpectation> allowed;
  for (const NcclExpectation& expected : nccl_expectations(shape, call)) {
    if (call.algorithm && *call.algorithm != expected.algorithm) continue;
    if (call.protocol && *call.protocol != expected.protocol) continue;
    allowed.push_back(expected);
  }
  if (allowed.empty()) throw InputError(not_run(shape, call));
  const NcclExpectation choice = *std::ranges::min_element(allowed, {}, &NcclExpectation::time);
  std::vector<NcclExpectation> candidates = {choice};
  for (const NcclExpectation& other : allowed) {
    const bool same = other.algorithm == choice.algorithm && other.protocol == choice.protocol;
    const bool trades = other.latency >= choice.latency && other.transfer <= choice.transfer;
    if (call.tuner == NcclTuner::v2_8 && other.algorithm != choice.algorithm) continue;
    if (!same && (trades || shape.nodes > 1)) candidates.push_back(other);
  }
  return candidates;
}

int most_channels(const RingShape& shape, CollectiveAlgorithm algorithm) {
  // init.cc: 24 channels over NVLink on Hopper and before, 32 on Blackwell; two per lane before
  // Ampere. NVLS takes one thread block per two lanes.
  if (shape.nvlinks == 0) return 2;
  const bool blackwell =
      shape.architecture >= Architecture::blackwell && shape.architecture < Architecture::cdna1;
  const bool in_switch = algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
  if (in_switch) return blackwell ? 24 : 16;
  return std::min(blackwell ? 32 : 24, 2 * shape.nvlinks);
}

int nccl_channels(const RingShape& shape, CollectiveAlgorithm algorithm,
                  CollectiveProtocol protocol, Bytes bytes) {
  // enqueue.cc: least bytes per thread of a channel; LL counts per rank of a ring
  constexpr std::array kThreads = {512, 640, 512};
  constexpr std::array kBytesPerThread = {8, 8, 64};
  const auto p = static_cast<std::size_t>(protocol);
  double least = static_cast<double>(kThreads[p]) * kBytesPerThread[p];
  if (algorithm == Algorithm::ring && protocol == Protocol::ll) least *= shape.ranks;
  const double fits = static_cast<double>(bytes.value()) / least;
  return static_cast<int>(std::clamp(fits, 1.0, double(most_channels(shape, algorithm))));
}

}  // namespace tessera
