#pragma once

#include <span>
#include <string>
#include <vector>

#include "hw/link.h"
#include "hw/node.h"

namespace tessera {

/// Links of one node and the ways over them. Links are named by their position in `links()`; a way
/// is a list of positions in order.
///
/// Host side: every GPU has one link to its PCIe switch, or straight to its socket where no two
/// GPUs share a switch; a switch has one uplink to its socket; NICs hang on the switch of their
/// first GPU, and that part of the way is never narrower than the NIC.
class NodeLinks {
 public:
  explicit NodeLinks(const NodeSpec& node, Seconds fabric_latency);

  std::span<const Link> links() const { return links_; }

  /// NVLink straight, over the switch, or through one neighbour GPU (NCCL's NVB path: the
  /// neighbour with the widest bundles, the first of equals); else the PCIe tree.
  std::vector<int> gpu_to_gpu(int from, int to) const;
  std::vector<int> gpu_to_host(int gpu) const;
  std::vector<int> host_to_gpu(int gpu) const;
  std::vector<int> gpu_to_fabric(int gpu) const;  ///< through `nic_of(gpu)`
  std::vector<int> fabric_to_gpu(int gpu) const;

  int nic_of(int gpu) const { return gpu * nic_count_ / gpu_count_; }
  /// Link of the NVLink bundle between two GPUs, or kNoLink.
  int bundle(int from, int to) const { return bundles_.at(from, to); }

  static constexpr int kNoLink = -1;

 private:
  /// Both directions of a cable.
  struct Cable {
    int up = kNoLink;  ///< away from the GPU
    int down = kNoLink;
  };

  /// One link per ordered pair of places; kNoLink where there is none.
  class PairTable {
   public:
    explicit PairTable(int places)
        : places_(static_cast<std::size_t>(places)), links_(places_ * places_, kNoLink) {}
    int at(int from, int to) const { return links_[cell(from, to)]; }
    void set(int from, int to, const Cable& cable) {
      links_[cell(from, to)] = cable.up;
      links_[cell(to, from)] = cable.down;
    }

   private:
    std::size_t cell(int from, int to) const {
      return static_cast<std::size_t>(from) * places_ + static_cast<std::size_t>(to);
    }

    std::size_t places_;
    std::vector<int> links_;
  };

  int add(const Link& link);
  Cable add_cable(const std::string& near, const std::string& far, Link link);
  void add_nvlinks(const NodeSpec& node);
  void add_host_tree(const NodeSpec& node);
  void add_sockets(const NodeSpec& node);
  void add_nics(const NodeSpec& node, Seconds fabric_latency);

  int relay_between(int from, int to) const;
  std::vector<int> over_pcie(int from, int to) const;
  std::vector<int> between_switches(int from, int to) const;
  int switch_of(int gpu) const { return gpu / gpus_per_switch_; }
  int socket_of(int gpu) const { return gpu * sockets_ / gpu_count_; }
  int first_gpu_of_nic(int nic) const { return (nic * gpu_count_ + nic_count_ - 1) / nic_count_; }

  int gpu_count_;
  int nic_count_;
  int sockets_;
  int gpus_per_switch_;
  std::vector<Link> links_;
  PairTable bundles_;                ///< between GPUs
  std::vector<Cable> switch_ports_;  ///< per GPU; empty without NVSwitch
  std::vector<Cable> host_ports_;    ///< per GPU: to the PCIe switch or the socket
  std::vector<Cable> uplinks_;       ///< per PCIe switch; empty where GPUs share none
  PairTable socket_links_;
  std::vector<Cable> nics_;
};

}  // namespace tessera
