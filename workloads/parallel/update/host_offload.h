#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workloads/parallel/op_queue.h"
#include "workloads/parallel/pass_library.h"

namespace tessera {

/// Layers whose saved activations wait in host memory (Block::waits_on_host). Each is copied out
/// behind its forward pass; of L layers, the first n of which wait, the kernels of layer
/// (g + 1) L / n wait for the copy of layer g, whose memory is free from its end on. Backward
/// copies layer g back from layer (g + 1) L / n - 1 on. Source: Transformer Engine
/// pytorch/cpu_offload.py, AsyncDoubleBufferGroupOffloadHandler.
class HostOffload {
 public:
  /// All have to outlive it. Does nothing where no layer waits.
  HostOffload(PassLibrary& library, OpQueue& queue);

  /// Ahead of and behind one block; `position` in ModelGraph::order.
  void before(int position, const ScheduledPass& pass);
  void after(int position, const ScheduledPass& pass);

 private:
  /// By position and micro-batch.
  using Place = std::pair<int, int>;
  std::int32_t copy(OpKind kind, const Place& place);
  /// Awaits the op of `place` in `ops`, and forgets it.
  void settle(std::map<Place, std::int32_t>& ops, const Place& place);

  PassLibrary& library_;
  OpQueue& queue_;
  std::vector<int> waiting_;            ///< positions, ascending
  std::map<int, int> end_of_window_;    ///< last position while which a layer is copied
  std::map<Place, std::int32_t> out_;   ///< copies that nothing waited for yet
  std::map<Place, std::int32_t> done_;  ///< of these, all, until they come back
  std::map<Place, std::int32_t> in_;
};

}  // namespace tessera
