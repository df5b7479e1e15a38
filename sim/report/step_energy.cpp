#include "sim/report/step_energy.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "hw/power.h"
#include "sim/report/step_report.h"

namespace tessera {
namespace {

/// Watts in every slice of the step.
using SlicedWatts = std::vector<double>;

void add_to(SlicedWatts& sum, const SlicedWatts& load) {
  for (std::size_t slice = 0; slice < sum.size(); ++slice) sum[slice] += load[slice];
}

double mean_of_load(const SlicedWatts& load) {
  return std::accumulate(load.begin(), load.end(), 0.0) / static_cast<double>(load.size());
}

SlicedWatts load_of(const GpuWork& work, Seconds step) {
  const Watts idle = idle_power(work.gpu);
  const Watts dynamic =
      std::max(Watts(0), busy_power(work.gpu) - idle) * dynamic_power_share(clock_share(work.gpu));
  const double slice_s = step.value() / kPowerSlices;
  SlicedWatts load(kPowerSlices, idle.value());
  for (std::size_t slice = 0; slice < load.size() && slice_s > 0; ++slice)
    load[slice] += dynamic.value() * std::min(1.0, work.slices[slice] / slice_s);
  return load;
}

/// Loads of nodes and racks. Those that hold the same are looked at once: members by number, and
/// how often they stand in the list.
class Boxes {
 public:
  explicit Boxes(double always) : always_(always) {}

  /// A box with the loads of `members`, positions of `loads`; ascending.
  void add(std::vector<int> members, const std::vector<SlicedWatts>& loads) {
    const auto [entry, is_new] =
        number_.try_emplace(std::move(members), static_cast<int>(loads_.size()));
    if (is_new) {
      SlicedWatts sum(kPowerSlices, always_);
      for (const int member : entry->first) add_to(sum, loads[static_cast<std::size_t>(member)]);
      loads_.push_back(std::move(sum));
    }
    in_order_.push_back(entry->second);
  }

  Watts mean() const {
    double sum = 0;
    for (const int number : in_order_)
      sum += mean_of_load(loads_[static_cast<std::size_t>(number)]);
    return Watts(in_order_.empty() ? 0 : sum / static_cast<double>(in_order_.size()));
  }
  Watts peak() const {
    double most = 0;
    for (const SlicedWatts& load : loads_) most = std::max(most, std::ranges::max(load));
    return Watts(most);
  }
  const std::vector<SlicedWatts>& loads() const { return loads_; }
  /// By box: which of the loads it has.
  const std::vector<int>& in_order() const { return in_order_; }

 private:
  double always_;
  std::map<std::vector<int>, int> number_;
  std::vector<SlicedWatts> loads_;
  std::vector<int> in_order_;
};

/// Positions in `work` of the GPUs of every node that the job runs on, by the node's number.
std::map<int, std::vector<int>> gpus_of_nodes(const ClusterSpec& cluster, const StepReport& report,
                                              const std::vector<GpuWork>& work,
                                              const std::vector<int>& placement) {
  std::map<int, int> position;
  for (std::size_t i = 0; i < work.size(); ++i) position[work[i].rank] = static_cast<int>(i);
  std::map<int, std::vector<int>> nodes;
  for (int rank = 0; rank < report.gpus(); ++rank) {
    const int gpu = placement.empty() ? rank : placement[static_cast<std::size_t>(rank)];
    nodes[gpu / cluster.node.gpu_count].push_back(position.at(report.folding.of(rank)));
  }
  for (auto& [node, members] : nodes) std::ranges::sort(members);
  return nodes;
}

void measure_nodes(const ClusterSpec& cluster, const std::map<int, std::vector<int>>& nodes,
                   std::vector<SlicedWatts> loads, StepEnergy& energy) {
  const int unused = static_cast<int>(loads.size());
  loads.emplace_back(kPowerSlices, idle_power(cluster.node.gpu).value());
  Boxes of_nodes(cluster.node.host_power.value());
  std::map<int, std::vector<int>> racks;
  for (const auto& [node, members] : nodes) {
    std::vector<int> all = members;
    all.resize(static_cast<std::size_t>(cluster.node.gpu_count), unused);
    of_nodes.add(std::move(all), loads);
    if (cluster.nodes_per_rack > 0)
      racks[node / cluster.nodes_per_rack].push_back(of_nodes.in_order().back());
  }
  Boxes of_racks(0);
  for (auto& [rack, members] : racks) {
    std::ranges::sort(members);
    of_racks.add(std::move(members), of_nodes.loads());
  }
  energy.node_mean = of_nodes.mean();
  energy.node_peak = of_nodes.peak();
  energy.rack_mean = of_racks.mean();
  energy.rack_peak = of_racks.peak();
}

bool has_known_power(const GpuSpec& gpu) {
  return gpu.tdp.value() > 0 || gpu.busy_power.value() > 0;
}

bool is_confirmed(const NodeSpec& node, std::string_view figure) {
  return std::ranges::none_of(node.sources, [&](const FigureSource& entry) {
    return !entry.confirmed && std::ranges::find(entry.figures, figure) != entry.figures.end();
  });
}

/// Of everything but the GPUs of the job.
void add_surroundings(const ClusterSpec& cluster, double step, double nodes, StepEnergy& energy) {
  energy.hosts_j = cluster.node.host_power.value() * step * nodes;
  energy.switches_j = cluster.switch_power.value() * step * nodes;
  energy.facility_j = (energy.gpus_j + energy.hosts_j + energy.switches_j) * cluster.pue;
  energy.idle += (cluster.node.host_power + cluster.switch_power) * nodes;
  energy.host_is_confirmed = is_confirmed(cluster.node, "host_power");
}

}  // namespace

std::optional<StepEnergy> step_energy(const ClusterSpec& cluster, const StepReport& report,
                                      const std::vector<GpuWork>& work,
                                      const std::vector<int>& placement) {
  const bool known =
      std::ranges::all_of(work, [](const GpuWork& of) { return has_known_power(of.gpu); });
  if (!known || work.empty() || !has_known_power(cluster.node.gpu)) return std::nullopt;
  const double step = report.step_time.value();
  StepEnergy energy;
  std::vector<SlicedWatts> loads;
  for (const GpuWork& of : work) {
    loads.push_back(load_of(of, report.step_time));
    energy.clock = std::min(energy.clock, clock_share(of.gpu));
  }
  const auto nodes = gpus_of_nodes(cluster, report, work, placement);
  for (const auto& [node, members] : nodes) {
    for (const int member : members) {
      energy.gpus_j += mean_of_load(loads[static_cast<std::size_t>(member)]) * step;
      energy.idle += idle_power(work[static_cast<std::size_t>(member)].gpu);
    }
  }
  energy.mean_gpu =
      Watts(step > 0 ? energy.gpus_j / step / report.gpus() : energy.idle.value() / report.gpus());
  add_surroundings(cluster, step, static_cast<double>(report.gpus()) / cluster.node.gpu_count,
                   energy);
  measure_nodes(cluster, nodes, std::move(loads), energy);
  return energy;
}

}  // namespace tessera
