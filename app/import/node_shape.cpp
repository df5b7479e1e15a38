#include "app/import/node_shape.h"

#include <algorithm>
#include <set>

#include "hw/link_rates.h"
#include "hw/units/input_error.h"
#include "hw/units/text.h"
#include "hw/validation.h"

namespace tessera {
namespace {

/// Whether `group` is what an even spread over `groups` groups gives.
bool is_even(const std::vector<int>& group, int groups) {
  const int count = static_cast<int>(group.size());
  for (int i = 0; i < count; ++i) {
    if (group[static_cast<std::size_t>(i)] != i * groups / count) return false;
  }
  return true;
}

/// Groups numbered in the order in which they first occur.
std::vector<int> renumbered(const std::vector<int>& groups) {
  std::vector<int> seen;
  std::vector<int> result;
  for (const int group : groups) {
    const auto found = std::ranges::find(seen, group);
    result.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(group);
  }
  return result;
}

}  // namespace

void assume_usual_rates(Imported& imported) {
  NodeSpec& node = imported.cluster.node;
  node.pcie_efficiency = kPinnedCopyShare;
  node.pcie_latency = kPcieHop;
  imported.assumed.push_back("PCIe and C2C copies reach 82 % of the line rate, 0.5 us per hop");
  if (node.interconnect != GpuInterconnect::none) {
    node.nvlink_bandwidth_per_link = node.gpu.nvlink_bandwidth / std::max(1, node.gpu.nvlink_links);
    node.nvlink_efficiency = nccl_nvlink_share(node.gpu.nvlink_generation);
    node.nvlink_latency = kNvlinkHop;
    imported.assumed.push_back("NVLinks of " + node.gpu.id + ": " +
                               to_text(node.nvlink_bandwidth_per_link) +
                               " each, NCCL's share of it, 1 us per hop");
  }
  if (node.gpu_count > 1 && !node.gpu.peer_to_peer) {
    node.staged_bandwidth = kStagedCopy;
    imported.assumed.push_back("copies between cards of " + node.gpu.id +
                               ", which have no peer-to-peer, go through the host at " +
                               to_text(kStagedCopy) + " where no NVLink joins them; " +
                               "sendrecv_perf of nccl-tests tells");
  }
  if (node.nic_count == 0) return;
  node.nic_efficiency = kNicShare;
  if (node.nic_latency.value() == 0) node.nic_latency = kInfinibandHop;
  imported.assumed.push_back("NICs reach 92 % of their rate");
}

void set_sockets(const std::vector<int>& socket_of_gpu, Imported& imported) {
  const std::vector<int> sockets = renumbered(socket_of_gpu);
  const int count = *std::ranges::max_element(sockets) + 1;
  imported.cluster.node.sockets = count;
  if (!is_even(sockets, count)) {
    imported.ignored.push_back(
        "which socket each GPU is on: the result spreads the GPUs evenly, "
        "in order, over " +
        std::to_string(count) + " sockets");
  }
}

void set_pcie_switches(const std::vector<int>& switch_of_gpu, Imported& imported) {
  const bool none = std::ranges::all_of(switch_of_gpu, [](int s) { return s < 0; });
  if (none) return;
  const std::vector<int> switches = renumbered(switch_of_gpu);
  const int count = *std::ranges::max_element(switches) + 1;
  const int gpus = static_cast<int>(switches.size());
  const bool whole = gpus % count == 0 && is_even(switches, count) &&
                     std::ranges::find(switch_of_gpu, -1) == switch_of_gpu.end();
  if (whole) imported.cluster.node.gpus_per_pcie_switch = gpus / count;
  if (whole || count == gpus) return;
  imported.ignored.push_back(
      "which PCIe switch each GPU is on: it is uneven; every GPU gets a way of its own to its "
      "socket");
}

void set_nics(int count, BytesPerSecond each, Imported& imported) {
  NodeSpec& node = imported.cluster.node;
  int kept = count;
  if (count > node.gpu_count) kept = count / node.gpu_count * node.gpu_count;
  if (kept < count) {
    imported.ignored.push_back(std::to_string(count - kept) + " of " + std::to_string(count) +
                               " NICs: they do not divide over " + std::to_string(node.gpu_count) +
                               " GPUs");
  }
  node.nic_count = kept;
  node.nic_bandwidth = each;
}

Imported checked(Imported imported, const std::string& name) {
  std::vector<Problem> problems = problems_of(imported.cluster);
  for (Problem& problem : problems) problem.where = name + ": " + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
  return imported;
}

void refuse(const std::string& where, const std::string& what, const std::string& hint) {
  throw InputError(Problem{where, what, hint});
}

std::string listed_briefly(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace tessera
