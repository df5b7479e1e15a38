#include "sim/engine/network/chunked_run.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace tessera {
namespace {

/// One run of all hops of a transfer; lives as long as a piece is under way.
class ChunkedRun : public std::enable_shared_from_this<ChunkedRun> {
 public:
  ChunkedRun(const Transfer& transfer, FlowNetwork& network, SimClock& clock, Action on_end)
      : hops_(transfer.hops),
        network_(network),
        clock_(clock),
        on_end_(std::move(on_end)),
        progress_(hops_.size()),
        waiting_(hops_.size()) {
    for (std::size_t hop = 0; hop < hops_.size(); ++hop) {
      open_ += static_cast<std::size_t>(hops_[hop].pieces);
      for (const ChunkWait& wait : hops_[hop].waits) waiting_[wait.move].push_back(hop);
    }
  }

  void start() {
    for (std::size_t hop = 0; hop < hops_.size(); ++hop) try_start(hop);
  }

 private:
  struct Progress {
    int started = 0;  ///< pieces
    int ended = 0;
  };

  void try_start(std::size_t number) {
    const ChunkHop& hop = hops_[number];
    Progress& own = progress_[number];
    if (own.started != own.ended || own.started == hop.pieces) return;
    for (const ChunkWait& wait : hop.waits) {
      if (progress_[wait.move].ended < own.started + 1 - wait.lag) return;
    }
    ++own.started;
    // SimGrid must not be given work while it reports that a flow has ended.
    Action arrive = [self = shared_from_this(), number] {
      self->clock_.after(Seconds(0), [self, number] { self->end(number); });
    };
    if (hop.path.valid()) {
      network_.start(hop.path, hop.bytes, std::move(arrive));
    } else {
      arrive();
    }
  }

  void end(std::size_t number) {
    ++progress_[number].ended;
    if (--open_ == 0) return on_end_();
    try_start(number);
    for (const std::size_t hop : waiting_[number]) try_start(hop);
  }

  const std::vector<ChunkHop>& hops_;
  FlowNetwork& network_;
  SimClock& clock_;
  Action on_end_;
  std::vector<Progress> progress_;                 ///< by hop
  std::vector<std::vector<std::size_t>> waiting_;  ///< by hop: those that wait for it
  std::size_t open_ = 0;                           ///< pieces that have not arrived
};

}  // namespace

void start_chunked_run(const Transfer& transfer, FlowNetwork& network, SimClock& clock,
                       Action on_end) {
  std::make_shared<ChunkedRun>(transfer, network, clock, std::move(on_end))->start();
}

}  // namespace tessera
