#include "sim/engine/chunked_rings.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace tessera {
namespace {

/// One run of all rings of a transfer; lives as long as a piece is under way.
class ChunkedRun : public std::enable_shared_from_this<ChunkedRun> {
 public:
  ChunkedRun(const Transfer& transfer, FlowNetwork& network, SimClock& clock, Action on_end)
      : transfer_(transfer), network_(network), clock_(clock), on_end_(std::move(on_end)) {
    for (const ChunkRing& ring : transfer.rings) {
      hops_.emplace_back(ring.hops.size());
      open_ += ring.hops.size() * static_cast<std::size_t>(transfer.steps);
    }
  }

  void start() {
    for (std::size_t ring = 0; ring < hops_.size(); ++ring) {
      for (std::size_t hop = 0; hop < hops_[ring].size(); ++hop) try_start(ring, hop);
    }
  }

 private:
  struct Hop {
    int started = 0;  ///< steps
    int ended = 0;
  };

  void try_start(std::size_t ring, std::size_t hop) {
    std::vector<Hop>& hops = hops_[ring];
    Hop& own = hops[hop];
    const Hop& before = hops[(hop + hops.size() - 1) % hops.size()];
    const bool idle = own.started == own.ended && own.started < transfer_.steps;
    const bool has_piece = own.started == 0 || before.ended >= own.started;
    if (!idle || !has_piece) return;
    ++own.started;
    const ChunkRing& pieces = transfer_.rings[ring];
    network_.start(pieces.hops[hop], pieces.bytes, [self = shared_from_this(), ring, hop] {
      // SimGrid must not be given work while it reports that a flow has ended.
      self->clock_.after(Seconds(0), [self, ring, hop] { self->end(ring, hop); });
    });
  }

  void end(std::size_t ring, std::size_t hop) {
    ++hops_[ring][hop].ended;
    if (--open_ == 0) return on_end_();
    try_start(ring, hop);
    try_start(ring, (hop + 1) % hops_[ring].size());
  }

  const Transfer& transfer_;
  FlowNetwork& network_;
  SimClock& clock_;
  Action on_end_;
  std::vector<std::vector<Hop>> hops_;  ///< by ring and member
  std::size_t open_ = 0;                ///< pieces that have not arrived
};

}  // namespace

void start_chunked_rings(const Transfer& transfer, FlowNetwork& network, SimClock& clock,
                         Action on_end) {
  std::make_shared<ChunkedRun>(transfer, network, clock, std::move(on_end))->start();
}

}  // namespace tessera
