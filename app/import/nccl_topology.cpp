// Reads NCCL's XML: CPUs hold PCI devices, these hold switches, GPUs with their NVLinks, and NICs.
// Source of the tags: NVIDIA/nccl src/graph/xml.cc, topo.cc.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "app/import/imported.h"
#include "app/import/node_shape.h"
#include "app/import/xml_file.h"
#include "hw/units/lower_case.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

constexpr int kMostLinks = 1000;
constexpr const char* kSwitchClass = "0x0604";    // a PCI bridge
constexpr const char* kNvswitchClass = "0x0680";  // as the target of an NVLink
constexpr const char* kGpuClass = "0x0302";
constexpr const char* kDisplayClass = "0x0300";
constexpr const char* kEthernetClass = "0x0200";
constexpr const char* kInfinibandClass = "0x0207";

struct NvlinkTo {
  std::string target;  ///< bus id
  int count = 0;
  std::string type;  ///< class of the target
  std::string where;
};

struct FoundGpu {
  int number = 0;
  int sm = 0;
  int cpu = 0;
  int pcie_switch = -1;
  double pcie_rate = 0;  ///< bytes per second; 0 = not given
  std::string bus;
  std::vector<NvlinkTo> nvlinks;
};

struct FoundNic {
  std::string name;
  double bits_per_second = 0;
  double latency = 0;  ///< seconds
};

/// Rate of "32.0 GT/s PCIe" over `width` lanes; 0 where it cannot be read. Generations 1 and 2 send
/// 8 of 10 bits, later ones 128 of 130.
double pcie_rate(const char* speed, int width) {
  const double transfers = std::strtod(speed, nullptr);
  if (!(transfers > 0 && transfers < 1000) || width <= 0) return 0;
  const double coding = transfers <= 5 ? 0.8 : 128.0 / 130;
  return transfers * 1e9 * width * coding / 8;
}

class NcclTopologyReader {
 public:
  explicit NcclTopologyReader(const XmlFile& file) : file_(file) {}

  void read() {
    for (const pugi::xml_node& cpu : file_.root().children("cpu")) {
      cpus_.push_back(cpu);
      walk(cpu, -1, 0);
    }
    take_plain_devices();
    std::ranges::stable_sort(gpus, {}, &FoundGpu::number);
  }

  std::vector<FoundGpu> gpus;
  std::vector<FoundNic> nics;
  std::string unused_devices;  ///< PCI devices that stand for nothing in the result; empty: none
  const std::vector<pugi::xml_node>& cpus() const { return cpus_; }

 private:
  /// Files that clouds ship for NCCL_TOPO_FILE leave GPUs and NICs to NCCL: they are PCI devices
  /// alone. Where the file describes some itself, only these count.
  void take_plain_devices() {
    if (gpus.empty()) {
      const bool accelerators = std::ranges::any_of(
          plain_gpus_, [](const auto& found) { return found.first.starts_with(kGpuClass); });
      for (auto& [device, gpu] : plain_gpus_) {
        if (accelerators && !device.starts_with(kGpuClass)) continue;
        gpu.number = static_cast<int>(gpus.size());
        gpus.push_back(std::move(gpu));
      }
    } else if (!plain_gpus_.empty()) {
      unused_devices = std::to_string(plain_gpus_.size()) + " PCI devices of GPUs without <gpu>";
    }
    if (nics.empty()) nics.assign(static_cast<std::size_t>(plain_nics_), FoundNic());
  }

  void walk(const pugi::xml_node& node, int pcie_switch, double rate) {
    for (const pugi::xml_node& child : node.children()) {
      const std::string name = child.name();
      if (name == "pci") walk_pci(child, pcie_switch);
      if (name == "gpu") add_gpu(child, pcie_switch, rate);
      if (name == "nic") walk(child, pcie_switch, 0);
      if (name == "net") add_nic(child);
    }
  }

  void walk_pci(const pugi::xml_node& pci, int pcie_switch) {
    const std::string device = pci.attribute("class").value();
    const bool is_switch = device.starts_with(kSwitchClass);
    const int below = is_switch ? next_switch_++ : pcie_switch;
    const int width = whole_number(file_, pci, "link_width", 0, 64);
    const double rate = pcie_rate(pci.attribute("link_speed").value(), width);
    walk(pci, below, rate);
    if (pci.child("gpu") || pci.child("nic")) return;
    if (device.starts_with(kEthernetClass) || device.starts_with(kInfinibandClass)) ++plain_nics_;
    if (!device.starts_with(kGpuClass) && !device.starts_with(kDisplayClass)) return;
    check_gpu_count(pci, plain_gpus_.size());
    plain_gpus_.emplace_back(device, gpu_of(pci, pcie_switch, rate));
  }

  FoundGpu gpu_of(const pugi::xml_node& pci, int pcie_switch, double rate) const {
    FoundGpu gpu;
    gpu.cpu = static_cast<int>(cpus_.size()) - 1;
    gpu.pcie_switch = pcie_switch;
    gpu.pcie_rate = rate;
    gpu.bus = lower_case(pci.attribute("busid").value());
    return gpu;
  }

  void check_gpu_count(const pugi::xml_node& node, std::size_t count) const {
    if (count >= kMostGpusOfNode) refuse(file_.where(node), "has too many GPUs", "use up to 1024");
  }

  void add_gpu(const pugi::xml_node& node, int pcie_switch, double rate) {
    FoundGpu gpu = gpu_of(node.parent(), pcie_switch, rate);
    gpu.number = whole_number(file_, node, "dev", static_cast<int>(gpus.size()), kMostGpusOfNode);
    gpu.sm = whole_number(file_, node, "sm", 0, 1000);
    for (const pugi::xml_node& link : node.children("nvlink")) {
      gpu.nvlinks.push_back({lower_case(link.attribute("target").value()),
                             whole_number(file_, link, "count", 1, kMostLinks),
                             lower_case(link.attribute("tclass").value()), file_.where(link)});
    }
    for (const FoundGpu& other : gpus) {
      if (other.number == gpu.number) {
        refuse(file_.where(node), "GPU " + std::to_string(gpu.number) + " occurs twice",
               "give every GPU a dev of its own");
      }
    }
    check_gpu_count(node, gpus.size());
    gpus.push_back(std::move(gpu));
  }

  void add_nic(const pugi::xml_node& net) {
    const int megabits = whole_number(file_, net, "speed", 0, 100'000'000);
    const double latency = std::strtod(net.attribute("latency").value(), nullptr);
    constexpr double kLongest = 1000;  // us
    const bool sound = latency > 0 && latency < kLongest;
    nics.push_back({net.attribute("name").value(), megabits * 1e6, sound ? latency * 1e-6 : 0});
  }

  const XmlFile& file_;
  std::vector<pugi::xml_node> cpus_;
  int next_switch_ = 0;
  std::vector<std::pair<std::string, FoundGpu>> plain_gpus_;  ///< with their PCI class
  int plain_nics_ = 0;
};

/// The usual GPU of a compute capability.
std::string usual_gpu(int sm) {
  static const std::map<int, std::string> kGpus{
      {60, "P100-SXM2-16GB"}, {61, "P4"},   {70, "V100-SXM2-32GB"}, {75, "T4"},
      {80, "A100-SXM4-80GB"}, {86, "A10G"}, {89, "L40S"},           {90, "H100-SXM5-80GB"},
      {100, "B200-SXM-180GB"}};
  const auto found = kGpus.find(sm);
  return found == kGpus.end() ? "" : found->second;
}

void choose_gpu(const XmlFile& file, const std::vector<FoundGpu>& gpus,
                const ImportOptions& options, const GpuFinder& find_gpu, Imported& imported) {
  imported.gpu = options.gpu.empty() ? usual_gpu(gpus.front().sm) : options.gpu;
  if (imported.gpu.empty()) {
    const int sm = gpus.front().sm;
    refuse(file.where(file.root()),
           sm == 0 ? "the file does not say what its " + std::to_string(gpus.size()) + " GPUs are"
                   : "GPU 0 has sm = " + std::to_string(sm),
           "name the GPU with --gpu");
  }
  imported.cluster.node.gpu = find_gpu(imported.gpu);
  if (options.gpu.empty()) {
    imported.assumed.push_back("the GPU is " + imported.gpu + ", from sm " +
                               std::to_string(gpus.front().sm));
  }
  const bool equal =
      std::ranges::all_of(gpus, [&](const FoundGpu& gpu) { return gpu.sm == gpus.front().sm; });
  if (!equal) imported.ignored.push_back("that the GPUs differ: all become " + imported.gpu);
}

/// Both GPUs name their bundle; the two have to agree.
void add_pair(const FoundGpu& from, const FoundGpu& to, const NvlinkTo& link,
              std::map<std::pair<int, int>, int>& pairs) {
  const int back = [&] {
    int sum = 0;
    for (const NvlinkTo& other : to.nvlinks) sum += other.target == from.bus ? other.count : 0;
    return sum;
  }();
  int there = 0;
  for (const NvlinkTo& other : from.nvlinks) there += other.target == to.bus ? other.count : 0;
  if (there != back) {
    refuse(link.where,
           "GPU " + std::to_string(from.number) + " has " + std::to_string(there) +
               " NVLinks to GPU " + std::to_string(to.number) + ", which has " +
               std::to_string(back) + " back",
           "give both directions");
  }
  const auto [low, high] = std::minmax(from.number, to.number);
  pairs[{low, high}] = there;
}

/// NVLinks of a file that leaves them to NCCL: boards of 8 and 16 GPUs have switches since
/// NVLink 3.
void assume_nvlinks(const XmlFile& file, std::size_t gpus, Imported& imported) {
  NodeSpec& node = imported.cluster.node;
  if (node.gpu.nvlink_links == 0 || gpus == 1) return;
  constexpr int kFirstWithSwitches = 3;
  const bool on_board = node.gpu.form_factor == FormFactor::sxm;
  if (!on_board || node.gpu.nvlink_generation < kFirstWithSwitches || gpus % 8 != 0)
    refuse(file.where(file.root()),
           "does not say how the NVLinks of " + std::to_string(gpus) + " " + node.gpu.id +
               " are joined",
           "give what NCCL_TOPO_DUMP_FILE wrote on such a node");
  node.interconnect = GpuInterconnect::nvswitch;
  imported.assumed.push_back("all NVLinks of " + node.gpu.id +
                             " go to switches: the file leaves them to NCCL");
}

void set_nvlinks(const std::vector<FoundGpu>& gpus, Imported& imported) {
  NodeSpec& node = imported.cluster.node;
  std::map<std::pair<int, int>, int> pairs;
  std::set<int> to_switch;
  std::set<std::string> other;
  for (const FoundGpu& gpu : gpus) {
    int count = 0;
    for (const NvlinkTo& link : gpu.nvlinks) {
      if (link.type.starts_with(kNvswitchClass)) {
        count += link.count;
      } else if (link.type.starts_with(kGpuClass) || link.type.starts_with(kDisplayClass)) {
        const auto target = std::ranges::find(gpus, link.target, &FoundGpu::bus);
        if (target == gpus.end() || target->number == gpu.number) {
          refuse(link.where, "NVLink target \"" + link.target + "\" is no other GPU of the file",
                 "give the bus id of a GPU");
        }
        add_pair(gpu, *target, link, pairs);
      } else {
        other.insert(link.type);
      }
    }
    if (count > 0) to_switch.insert(count);
  }
  for (const std::string& type : other) {
    imported.ignored.push_back("NVLinks to devices of class \"" + type + "\"");
  }
  if (to_switch.empty() && pairs.empty()) return;
  node.interconnect = to_switch.empty() ? GpuInterconnect::direct : GpuInterconnect::nvswitch;
  if (to_switch.empty()) {
    for (const auto& [pair, links] : pairs) node.pairs.push_back({pair.first, pair.second, links});
    return;
  }
  if (!pairs.empty()) imported.ignored.push_back("NVLinks between GPUs beside those to switches");
  if (to_switch.size() > 1 || *to_switch.begin() != node.gpu.nvlink_links) {
    imported.ignored.push_back(
        "NVLinks per GPU in the file (" + std::to_string(*to_switch.rbegin()) + " at most): all " +
        std::to_string(node.gpu.nvlink_links) + " of " + node.gpu.id + " go to the switch");
  }
}

/// NCCL's budget between two sockets, by the CPU; NVIDIA/nccl src/graph/topo.h.
BytesPerSecond rate_between_sockets(const pugi::xml_node& cpu) {
  const std::string vendor = cpu.attribute("vendor").value();
  if (vendor == "AuthenticAMD") return 16_GBps;
  if (vendor != "GenuineIntel") return 10_GBps;
  const int model = std::atoi(cpu.attribute("modelid").value());
  if (model >= 0xCF) return 40_GBps;  // Emerald Rapids
  if (model >= 0x8F) return 22_GBps;  // Sapphire Rapids
  return model >= 0x55 ? 10_GBps : 6_GBps;
}

void set_host(const NcclTopologyReader& found, Imported& imported) {
  NodeSpec& node = imported.cluster.node;
  std::vector<int> sockets;
  std::vector<int> switches;
  std::set<double> rates;
  for (const FoundGpu& gpu : found.gpus) {
    sockets.push_back(gpu.cpu);
    switches.push_back(gpu.pcie_switch);
    if (gpu.pcie_rate > 0) rates.insert(gpu.pcie_rate);
  }
  set_sockets(sockets, imported);
  set_pcie_switches(switches, imported);
  if (node.sockets > 1) node.socket_bandwidth = rate_between_sockets(found.cpus().front());
  if (rates.empty()) return;
  const BytesPerSecond slowest(*rates.begin());
  if (rates.size() > 1) {
    imported.ignored.push_back("that GPUs have PCIe links of different speeds: all get " +
                               to_text(slowest));
  }
  constexpr double kNear = 0.05;  // datasheets round line rates
  const double relative = slowest / node.gpu.pcie_bandwidth - 1;
  if (std::abs(relative) > kNear) node.gpu.pcie_bandwidth = slowest;
}

/// NICs of which the file says no more than that they are there.
void set_plain_nics(const XmlFile& file, int count, const ImportOptions& options,
                    Imported& imported) {
  if (options.nic_bandwidth.value() <= 0)
    refuse(file.where(file.root()), "has " + std::to_string(count) + " NICs without a speed",
           "add --nic-bandwidth, the rate of each: '400 Gb/s'");
  set_nics(count, options.nic_bandwidth, imported);
}

void set_nics(const XmlFile& file, const NcclTopologyReader& found, const ImportOptions& options,
              Imported& imported) {
  std::map<double, int> count_by_speed;
  for (const FoundNic& nic : found.nics) ++count_by_speed[nic.bits_per_second];
  const int without_speed = count_by_speed.contains(0) ? count_by_speed[0] : 0;
  if (without_speed > 0 && count_by_speed.size() == 1)
    return set_plain_nics(file, without_speed, options, imported);
  if (without_speed > 0) {
    count_by_speed.erase(0);
    imported.ignored.push_back(std::to_string(without_speed) + " NICs without a speed");
  }
  if (count_by_speed.empty()) return;
  // Those of the GPUs are the many; storage and management have one or two of their own.
  const auto most = std::ranges::max_element(
      count_by_speed, {}, [](const auto& entry) { return std::pair(entry.second, entry.first); });
  for (const auto& [speed, count] : count_by_speed) {
    if (speed == most->first) continue;
    imported.ignored.push_back(std::to_string(count) + " NICs of " +
                               to_text(BytesPerSecond(speed / 8)));
  }
  const BytesPerSecond rate =
      options.nic_bandwidth.value() > 0 ? options.nic_bandwidth : BytesPerSecond(most->first / 8);
  set_nics(most->second, rate, imported);
  for (const FoundNic& nic : found.nics) {
    Seconds& latency = imported.cluster.node.nic_latency;
    latency = std::max(latency, Seconds(nic.latency));
  }
}

}  // namespace

Imported import_nccl_topology(const std::string& text, const std::string& name,
                              const ImportOptions& options, const GpuFinder& find_gpu) {
  const XmlFile file(text, name, "system");
  NcclTopologyReader found(file);
  found.read();
  if (found.gpus.empty()) {
    refuse(file.where(file.root()), "holds no GPU",
           "give a file of NCCL_TOPO_DUMP_FILE or NCCL_TOPO_FILE");
  }
  for (std::size_t i = 0; i < found.gpus.size(); ++i) found.gpus[i].number = static_cast<int>(i);
  Imported imported;
  imported.cluster.id = imported.cluster.node.id = "imported-nccl";
  imported.cluster.node.gpu_count = static_cast<int>(found.gpus.size());
  choose_gpu(file, found.gpus, options, find_gpu, imported);
  set_nvlinks(found.gpus, imported);
  const bool is_plain = found.gpus.front().sm == 0;
  if (is_plain && imported.cluster.node.interconnect == GpuInterconnect::none)
    assume_nvlinks(file, found.gpus.size(), imported);
  set_host(found, imported);
  set_nics(file, found, options, imported);
  if (!found.unused_devices.empty()) imported.ignored.push_back(found.unused_devices);
  assume_usual_rates(imported);
  Vocabulary vocabulary({{"system", {}},
                         {"cpu", {"vendor", "modelid"}},
                         {"pci", {"busid", "class", "link_speed", "link_width"}},
                         {"gpu", {"dev", "sm"}},
                         {"nvlink", {"target", "count", "tclass"}},
                         {"nic", {}},
                         {"net", {"name", "speed", "latency"}}});
  vocabulary.look_at(file.root());
  for (const std::string& line : vocabulary.unused()) imported.ignored.push_back(line);
  return checked(std::move(imported), name);
}

}  // namespace tessera
