#include "hw/gpu_sheet.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hw/findings.h"
#include "hw/power.h"
#include "hw/units/formatted.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

/// Who makes an architecture, how its compute capabilities begin, and the names of its dies where
/// they are made to a rule.
struct Family {
  Architecture architecture;
  std::string_view vendor;
  std::vector<std::string_view> versions;
  std::string_view dies;
};

/// CUDA C++ Programming Guide, LLVM's AMDGPU targets (recalled); Intel's as the catalog calls it.
const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {Architecture::pascal, "NVIDIA", {"6."}, "GP"},
      {Architecture::volta, "NVIDIA", {"7.0", "7.2"}, "GV"},
      {Architecture::turing, "NVIDIA", {"7.5"}, "TU"},
      {Architecture::ampere, "NVIDIA", {"8.0", "8.6", "8.7"}, "GA"},
      {Architecture::ada, "NVIDIA", {"8.9"}, "AD"},
      {Architecture::hopper, "NVIDIA", {"9."}, "GH"},
      {Architecture::blackwell, "NVIDIA", {"10.0", "10.1", "11.", "12."}, "GB"},
      {Architecture::blackwell_ultra, "NVIDIA", {"10.3"}, "GB"},
      {Architecture::cdna1, "AMD", {"gfx908"}, ""},
      {Architecture::cdna2, "AMD", {"gfx90a"}, ""},
      {Architecture::cdna3, "AMD", {"gfx94"}, ""},
      {Architecture::cdna4, "AMD", {"gfx95"}, ""},
      {Architecture::xe2, "Intel", {"xe2"}, ""}};
  return all;
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

constexpr const char* kNoStandIn =
    "; GPUs of other architectures are not described, and none stands in for them";

void check_capability(const GpuSpec& gpu, const Family& family, Findings& findings) {
  const std::string& own = gpu.compute_capability;
  const bool known = std::ranges::any_of(
      family.versions, [&](std::string_view version) { return own.starts_with(version); });
  findings.require(known, "compute_capability",
                   own.empty() ? "compute_capability is missing"
                               : "compute_capability = " + own + " is none of " +
                                     std::string(name_of(family.architecture)),
                   "rates follow from it: those of " + std::string(name_of(family.architecture)) +
                       " begin with " + joined(family.versions) + kNoStandIn);
}

/// Rates follow from these: a card of another vendor or generation would get those of this one.
void check_family(const GpuSpec& gpu, Findings& findings) {
  const Family& family = *std::ranges::find(families(), gpu.architecture, &Family::architecture);
  const std::string name(name_of(family.architecture)), vendor(family.vendor);
  findings.require(gpu.vendor == vendor, "vendor",
                   "vendor = " + gpu.vendor + ", but " + name + " is " + vendor + "'s",
                   "write " + vendor + kNoStandIn);
  check_capability(gpu, family, findings);
  findings.require(gpu.die.empty() || gpu.die.starts_with(family.dies), "die",
                   "die = " + gpu.die + " is none of " + name,
                   "what was measured on a die speaks for all cards of it: those of " + name +
                       " begin with " + std::string(family.dies));
}

void check_clocks(const GpuSpec& gpu, Findings& findings) {
  constexpr double kSlowest = 300e6, kFastest = 5e9;
  constexpr double kAboveBoost = 1.05;  // figures are rounded
  const double boost = gpu.boost_clock.value();
  if (boost <= 0) return;
  findings.require(boost >= kSlowest && boost <= kFastest, "boost_clock",
                   "boost_clock of " + to_text(gpu.boost_clock) + " is no GPU's",
                   "give it in MHz or GHz: 300 MHz to 5 GHz");
  findings.require(
      gpu.tensor_clock.value() <= boost * kAboveBoost, "tensor_clock",
      "tensor_clock of " + to_text(gpu.tensor_clock) + " is above the boost_clock of " +
          to_text(gpu.boost_clock),
      "the boost clock is the highest under load; dense peaks are quoted at it or below");
}

/// Lanes that the FP32 peak implies. SMs, compute units and Xe cores have 64 or 128.
void check_lanes(const GpuSpec& gpu, Findings& findings) {
  constexpr double kFewest = 32, kMost = 300;
  const double per_lane = 2.0 * gpu.sm_count * gpu.boost_clock.value();
  if (per_lane <= 0 || gpu.fp32.value() <= 0) return;
  const double lanes = gpu.fp32.value() / per_lane;
  findings.require(lanes >= kFewest && lanes <= kMost, "fp32",
                   formatted("fp32 of %s by %d SMs at %s takes %.3g lanes an SM",
                             to_short_text(gpu.fp32).c_str(), gpu.sm_count,
                             to_short_text(gpu.boost_clock).c_str(), lanes),
                   "SMs have 64 or 128: one of fp32, sm_count and boost_clock belongs to another "
                   "GPU, or is in another unit");
}

/// A format of half the width is no slower: on no GPU, dense or held down.
void check_formats(const GpuSpec& gpu, Findings& findings) {
  const FlopsPerSecond half = std::max(gpu.bf16, gpu.fp16);
  const auto no_slower = [&](const char* narrow, FlopsPerSecond narrow_peak, const char* wide,
                             FlopsPerSecond wide_peak) {
    if (narrow_peak.value() <= 0 || wide_peak.value() <= 0) return;
    findings.require(narrow_peak >= wide_peak, narrow,
                     std::string(narrow) + " of " + to_short_text(narrow_peak) + " is below " +
                         wide + " of " + to_short_text(wide_peak),
                     "give dense peaks of both, with FP32 sums where there are two");
  };
  no_slower("fp8", gpu.fp8, "the 16-bit peak", half);
  no_slower("fp4", gpu.fp4, "fp8", gpu.fp8);
  findings.require(
      half.value() <= 0 || gpu.tf32 <= half, "tf32",
      "tf32 of " + to_short_text(gpu.tf32) + " is above the 16-bit peak of " + to_short_text(half),
      "give dense peaks of both, with FP32 sums where there are two");
}

void check_memory(const GpuSpec& gpu, Findings& findings) {
  constexpr double kSlowest = 10e9, kFastest = 200e12;
  constexpr double kLargest = 8.0 * (1LL << 40);
  const double bandwidth = gpu.memory_bandwidth.value();
  findings.require(bandwidth <= 0 || (bandwidth >= kSlowest && bandwidth <= kFastest),
                   "memory_bandwidth",
                   "memory_bandwidth of " + to_text(gpu.memory_bandwidth) + " is no GPU's",
                   "give it in GB/s or TB/s: 10 GB/s to 200 TB/s");
  const auto memory = static_cast<double>(gpu.memory.value());
  findings.require(memory <= kLargest, "memory",
                   "memory of " + to_text(gpu.memory) + " is no GPU's", "give up to 8 TiB");
  constexpr Bytes kLargestCache = 4_GiB;
  findings.require(gpu.l2 <= kLargestCache, "l2", "l2 of " + to_text(gpu.l2) + " is no GPU's",
                   "caches are counted in MiB");
}

void check_watts(const GpuSpec& gpu, Findings& findings) {
  constexpr double kLeast = 5, kMost = 20e3;
  const double tdp = gpu.tdp.value();
  if (tdp <= 0) return;
  findings.require(tdp >= kLeast && tdp <= kMost, "tdp",
                   "tdp of " + to_text(gpu.tdp) + " is no board's", "give it in W: 5 W to 20 kW");
  findings.require(
      idle_power(gpu).value() < tdp, "idle_power",
      "idle_power of " + to_text(gpu.idle_power) + " is not below the tdp of " + to_text(gpu.tdp),
      "give what the board draws while no kernel runs");
  constexpr double kAboveLimit = 1.1;
  findings.require(
      busy_power(gpu).value() <= tdp * kAboveLimit, "busy_power",
      "busy_power of " + to_text(gpu.busy_power) + " is above the tdp of " + to_text(gpu.tdp),
      "the board keeps its power limit: give both of one board");
}

std::string generation_words(int generation) {
  return generation > 0 ? " of generation " + std::to_string(generation) : " of the newest";
}

/// One direction of a link of each generation [B/s] (NVIDIA and PCI-SIG, recalled).
void check_links(const GpuSpec& gpu, Findings& findings) {
  constexpr std::array<double, 7> kNvlink{0, 20e9, 25e9, 25e9, 25e9, 50e9, 100e9};
  constexpr std::array<double, 7> kPcieSlot{0, 4e9, 8e9, 15.8e9, 31.5e9, 63e9, 126e9};
  constexpr double kRounding = 1.1;
  // Of the newest where no generation is stated, as of other vendors' links.
  const auto rate_of = [](const std::array<double, 7>& rates, int generation) {
    const bool known = generation > 0 && generation < static_cast<int>(rates.size());
    return known ? rates[static_cast<std::size_t>(generation)] : rates.back();
  };
  const double link = rate_of(kNvlink, gpu.nvlink_generation);
  const BytesPerSecond links(link * gpu.nvlink_links);
  findings.require(
      gpu.nvlink_links == 0 || gpu.nvlink_bandwidth.value() <= links.value() * kRounding,
      "nvlink_bandwidth",
      formatted("nvlink_bandwidth of %s: %d links%s carry %s in one direction",
                to_text(gpu.nvlink_bandwidth).c_str(), gpu.nvlink_links,
                generation_words(gpu.nvlink_generation).c_str(), to_text(links).c_str()),
      "data sheets add both directions: give one; for a faster link, raise its "
      "generation too");
  const double slot = rate_of(kPcieSlot, gpu.pcie_generation);
  findings.require(
      gpu.pcie_bandwidth.value() <= slot * kRounding, "pcie_bandwidth",
      formatted("pcie_bandwidth of %s: 16 lanes%s carry %s in one direction",
                to_text(gpu.pcie_bandwidth).c_str(), generation_words(gpu.pcie_generation).c_str(),
                to_text(BytesPerSecond(slot)).c_str()),
      "data sheets add both directions: give one; for a faster link, raise its "
      "generation too");
}

void check_threads(const GpuSpec& gpu, Findings& findings) {
  constexpr int kFewest = 256;
  findings.require(gpu.max_threads_per_sm == 0 || gpu.max_threads_per_sm >= kFewest,
                   "max_threads_per_sm",
                   "max_threads_per_sm = " + std::to_string(gpu.max_threads_per_sm),
                   "an SM holds 1024 to 2048: give 256 or more, or leave it out");
}

}  // namespace

std::vector<Problem> sheet_problems_of(const GpuSpec& gpu) {
  Findings findings;
  check_family(gpu, findings);
  check_clocks(gpu, findings);
  check_lanes(gpu, findings);
  check_formats(gpu, findings);
  check_memory(gpu, findings);
  check_watts(gpu, findings);
  check_links(gpu, findings);
  check_threads(gpu, findings);
  return findings.take();
}

std::vector<Problem> sheet_problems_of(const NodeSpec& node) {
  Findings findings;
  findings.add_below("gpu", sheet_problems_of(node.gpu));
  return findings.take();
}

std::vector<Problem> sheet_problems_of(const ClusterSpec& cluster) {
  Findings findings;
  findings.add_below("node", sheet_problems_of(cluster.node));
  return findings.take();
}

}  // namespace tessera
