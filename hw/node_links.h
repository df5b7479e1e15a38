#pragma once

#include <span>
#include <string>
#include <vector>

#include "hw/link.h"
#include "hw/node.h"

namespace tessera {

/// What links of a cluster join.
enum class PlaceKind : std::uint8_t {
  gpu,
  nvswitch,
  pcie_switch,
  socket,
  nic,
  host_memory,
  nvme,
  staging_buffer,
  fabric_switch,
};

/// Numbers of the two places that a link leads from and to.
struct LinkEnds {
  int from = 0;
  int to = 0;
};

/// Links of one node and the ways over them. Links are named by their position in `links()`; a way
/// is a list of positions in order.
///
/// Host side: every GPU has one link to its PCIe switch, or straight to its socket where no two
/// GPUs share a switch; a switch has one uplink to its socket; NICs hang on the switch of their
/// first GPU, and that part of the way is never narrower than the NIC. Memory and drives hang on
/// the sockets.
class NodeLinks {
 public:
  explicit NodeLinks(const NodeSpec& node, Seconds fabric_latency);

  std::span<const Link> links() const { return links_; }

  /// The same node with links that no way takes. A GPU whose NIC has no way out, or none in, goes
  /// through the next NIC; NVLink ways fall back to relays and PCIe. Positions stay.
  NodeLinks without(std::span<const int> missing) const;
  /// GPUs that cannot reach every other GPU, the host and (where there are NICs) a NIC any more.
  std::vector<int> cut_off_gpus() const;

  /// NVLink straight, over the switch, or through one neighbour GPU (NCCL's NVB path: the
  /// neighbour with the widest bundles, the first of equals); else the PCIe tree.
  std::vector<int> gpu_to_gpu(int from, int to) const;
  std::vector<int> gpu_to_host(int gpu) const;  ///< to the memory of its socket
  std::vector<int> host_to_gpu(int gpu) const;
  std::vector<int> gpu_to_nvme(int gpu) const;  ///< drives of its socket, else of the next
  std::vector<int> nvme_to_gpu(int gpu) const;
  std::vector<int> gpu_to_fabric(int gpu) const;  ///< through `nic_of(gpu)`
  std::vector<int> fabric_to_gpu(int gpu) const;

  int nic_of(int gpu) const { return nic_of_gpu_[static_cast<std::size_t>(gpu)]; }
  int nic_count() const { return nic_count_; }  ///< bundles, see `nic_bundles`
  bool has_nvme() const { return !drives_.empty(); }
  /// Link of the NVLink bundle between two GPUs, or kNoLink.
  int bundle(int from, int to) const { return bundles_.at(from, to); }

  /// Numbers of places: GPUs first, then the NVSwitch, PCIe switches, sockets, NICs, memories and
  /// drives. NICs have an `attachment`: the place whose slot they sit in, which is no link.
  struct Place {
    PlaceKind kind = PlaceKind::gpu;
    std::string name;
  };
  std::span<const Place> places() const { return places_; }
  std::span<const LinkEnds> ends() const { return ends_; }
  int place_of_nic(int nic) const { return place("nic", nic); }
  int attachment_of_nic(int nic) const;

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
    void remove(int link) {
      for (int& entry : links_) {
        if (entry == link) entry = kNoLink;
      }
    }

   private:
    std::size_t cell(int from, int to) const {
      return static_cast<std::size_t>(from) * places_ + static_cast<std::size_t>(to);
    }

    std::size_t places_;
    std::vector<int> links_;
  };

  int add(const Link& link);
  int add_place(PlaceKind kind, const std::string& name);
  int place(const std::string& name, int index) const;
  Cable add_cable(const std::string& near, const std::string& far, Link link);
  void add_places(const NodeSpec& node);
  void add_nvlinks(const NodeSpec& node);
  void add_host_tree(const NodeSpec& node);
  void add_sockets(const NodeSpec& node);
  void add_nics(const NodeSpec& node, Seconds fabric_latency);
  void add_memory_and_drives(const NodeSpec& node);
  void add_staging(const NodeSpec& node);
  void choose_nics();

  int relay_between(int from, int to) const;
  std::vector<int> over_pcie(int from, int to) const;
  std::vector<int> between_switches(int from, int to) const;
  std::vector<int> gpu_to_socket(int gpu) const;
  std::vector<int> socket_to_gpu(int gpu) const;
  int socket_with_drives(int socket) const;
  int switch_of(int gpu) const { return gpu / gpus_per_switch_; }
  int socket_of(int gpu) const { return gpu * sockets_ / gpu_count_; }
  int first_gpu_of_nic(int nic) const { return (nic * gpu_count_ + nic_count_ - 1) / nic_count_; }

  int gpu_count_;
  int nic_count_;
  int sockets_;
  int gpus_per_switch_;
  std::vector<Link> links_;
  std::vector<LinkEnds> ends_;
  std::vector<Place> places_;
  PairTable bundles_;                ///< between GPUs
  std::vector<Cable> switch_ports_;  ///< per GPU; empty without NVSwitch
  std::vector<Cable> host_ports_;    ///< per GPU: to the PCIe switch or the socket
  std::vector<Cable> uplinks_;       ///< per PCIe switch; empty where GPUs share none
  PairTable socket_links_;
  std::vector<Cable> nics_;
  std::vector<Cable> memories_;  ///< per socket; empty where memory is never the bottleneck
  std::vector<Cable> drives_;    ///< per socket; without links where a socket has no drive
  std::vector<Cable> staging_;   ///< per GPU; empty where GPUs read each other's memory
  std::vector<int> nic_of_gpu_;
};

}  // namespace tessera
