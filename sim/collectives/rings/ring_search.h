#pragma once

#include <cstddef>
#include <vector>

namespace tessera {

/// Lanes between every two GPUs of a group, the same in both directions.
class LaneMatrix {
 public:
  explicit LaneMatrix(int gpus)
      : gpus_(gpus), lanes_(static_cast<std::size_t>(gpus) * static_cast<std::size_t>(gpus)) {}

  int gpus() const { return gpus_; }
  int lanes(int a, int b) const { return lanes_[cell(a, b)]; }
  void set(int a, int b, int lanes) { lanes_[cell(a, b)] = lanes_[cell(b, a)] = lanes; }

 private:
  std::size_t cell(int a, int b) const {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus_) +
           static_cast<std::size_t>(b);
  }

  int gpus_;
  std::vector<int> lanes_;
};

/// GPUs in the order in which a ring visits them; the last one is followed by the first.
using RingOrder = std::vector<int>;

/// Rings through all GPUs (at least two) that together use as many lanes as possible, each ring
/// one lane of every bundle that it crosses; a ring that is taken on several lanes is listed
/// several times. Empty where no ring exists. Like NCCL's search, takes the widest ring first;
/// equals in lexicographic order. Meant for the few GPUs of one node: it looks at every ring.
std::vector<RingOrder> pack_rings(LaneMatrix free);

}  // namespace tessera
