#include "sim/formats/snapshot/snapshot_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "hw/units/formatted.h"

namespace tessera {
namespace {

double gib(Bytes bytes) {
  return static_cast<double>(bytes.value()) / static_cast<double>(std::int64_t{1} << 30);
}

std::string row(const std::string& name, const std::vector<double>& numbers) {
  std::string line = "  " + name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ');
  for (const double number : numbers) {
    line += formatted("%12.3f", number);
  }
  return line + "\n";
}

/// What lives at the end, by who took it, largest first.
std::vector<std::pair<std::string, Bytes>> living(const MemorySnapshot& snapshot) {
  std::map<std::string, Bytes> by_label;
  for (const SnapshotSegment& segment : snapshot.segments)
    for (const SnapshotBlock& block : segment.blocks)
      if (block.active)
        by_label[block.label < 0 ? std::string("no stack")
                                 : snapshot.labels[static_cast<std::size_t>(block.label)]] +=
            block.bytes;
  std::vector<std::pair<std::string, Bytes>> sorted(by_label.begin(), by_label.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &std::pair<std::string, Bytes>::second);
  return sorted;
}

nlohmann::json json_of(const SnapshotPeak& peak) {
  nlohmann::json uses;
  for (int use = 0; use < kSnapshotUses; ++use)
    uses[std::string(name_of(static_cast<SnapshotUse>(use)))] =
        peak.of_uses[static_cast<std::size_t>(use)].value();
  return {{"allocated_bytes", peak.allocated.value()},
          {"reserved_bytes", peak.reserved.value()},
          {"at_peak_bytes", uses}};
}

}  // namespace

std::string table_text(const SnapshotPeak& peak, const MemorySnapshot& snapshot) {
  std::string text = "Memory at the peak, GiB\n";
  for (int use = 0; use < kSnapshotUses; ++use) {
    const Bytes bytes = peak.of_uses[static_cast<std::size_t>(use)];
    if (bytes.value() > 0)
      text += row(std::string(name_of(static_cast<SnapshotUse>(use))), {gib(bytes)});
  }
  text += row("allocated", {gib(peak.allocated)}) + row("reserved", {gib(peak.reserved)});
  constexpr std::size_t kShown = 10;
  text += "At the end, GiB\n";
  const auto all = living(snapshot);
  for (std::size_t i = 0; i < std::min(kShown, all.size()); ++i)
    text += row("", {gib(all[i].second)}).substr(0, 28) + "  " + all[i].first + "\n";
  return text;
}

std::string table_text(const SnapshotComparison& comparison) {
  const SnapshotPeak& measured = comparison.measured;
  const SnapshotPeak& simulated = comparison.simulated;
  std::vector<std::size_t> order;
  for (std::size_t use = 0; use < kSnapshotUses; ++use)
    if ((measured.of_uses[use] + simulated.of_uses[use]).value() > 0) order.push_back(use);
  const auto difference = [&](std::size_t use) {
    return gib(simulated.of_uses[use]) - gib(measured.of_uses[use]);
  };
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t use) { return std::abs(difference(use)); });
  std::string text = "Memory at the peak, GiB    measured   simulated  difference\n";
  for (const std::size_t use : order)
    text += row(std::string(name_of(static_cast<SnapshotUse>(use))),
                {gib(measured.of_uses[use]), gib(simulated.of_uses[use]), difference(use)});
  const auto both = [](const char* name, Bytes was, Bytes is) {
    return row(name, {gib(was), gib(is), gib(is) - gib(was)});
  };
  return text + both("allocated", measured.allocated, simulated.allocated) +
         both("reserved", measured.reserved, simulated.reserved);
}

std::string json_text(const SnapshotPeak& measured, const SnapshotPeak* simulated) {
  nlohmann::json json{{"measured", json_of(measured)}};
  if (simulated != nullptr) json["simulated"] = json_of(*simulated);
  return json.dump(2) + "\n";
}

}  // namespace tessera
