#pragma once

#include <vector>

#include "sim/remat/schedule.h"

namespace tessera::remat {

/// One block of a chain: the operators between two tensors that alone connect the forward pass, and
/// the operators of backward that follow from them.
struct ChainBlock {
  std::vector<OpId> forward, backward;
  Nanoseconds forward_time = 0, backward_time = 0;
  ByteCount output = 0;         ///< |a|, of the tensor that the next block starts from
  ByteCount gradient = 0;       ///< what later blocks hand to the backward of this and earlier ones
  ByteCount saved = 0;          ///< what backward reads of the block's forward, `output` included
  ByteCount own = 0;            ///< of that, what the block's own backward reads
  Nanoseconds own_time = 0;     ///< of the operators that `own` needs
  ByteCount own_peak = 0;       ///< while they run
  ByteCount forward_peak = 0;   ///< of the block's forward alone, its input not counted
  ByteCount saving_peak = 0;    ///< the same while `saved` is kept
  ByteCount backward_peak = 0;  ///< of what the block's backward makes
};

/// `graph` as a chain of at most `most` blocks, in forward order. Operators of backward belong to
/// the lowest block that one of them up to there has read. Tensors that cross blocks otherwise
/// (labels, masks) are left to the replay.
std::vector<ChainBlock> chain_of(const Graph& graph, int most);

/// What rotor calls a sequence: whole blocks.
struct ChainStep {
  bool backward = false;
  int block = 0;
};

/// Schedule of the operators of `steps` in which every tensor goes behind the last reader of each
/// of its productions. Repeated operators whose results nobody reads, or that cannot run again, are
/// left out.
Schedule schedule_of_chain(const Graph& graph, const std::vector<ChainBlock>& chain,
                           const std::vector<ChainStep>& steps);

}  // namespace tessera::remat
