#pragma once

#include <cstdint>

#include "hw/units/quantity.h"

namespace tessera {

/// What data-parallel ranks divide among themselves instead of each holding all of it; every value
/// includes the ones before. Rajbhandari et al., "ZeRO", SC 2020; Zhao et al., "PyTorch FSDP",
/// VLDB 2023.
enum class Sharding : std::uint8_t {
  none,        ///< DDP: gradients are all-reduced
  optimizer,   ///< ZeRO-1, Megatron's distributed optimizer: states; gradients are reduce-scattered
               ///< into full buffers, parameters gathered behind the update
  gradients,   ///< ZeRO-2: gradients are reduce-scattered as backward makes them
  parameters,  ///< ZeRO-3, FSDP's full shard: every layer's weights are gathered ahead of each use
};

/// How data-parallel ranks run one step together. A framework profile has one; a scenario's
/// `training.data_parallel` says what it changes.
struct DataParallel {
  Sharding sharding = Sharding::none;
  int shard_group = 0;  ///< neighbouring ranks that divide one copy (hybrid sharding: what they
                        ///< hold is all-reduced over the groups); 0: all
  bool gather_units = false;  ///< with `gradients`, parameters are divided too: gathered layer by
                              ///< layer in forward, kept until backward is through (FSDP's
                              ///< SHARD_GRAD_OP); else gathered behind the update
  bool overlap_gradients = false;  ///< sums start in backward, bucket by bucket; else all gradients
                                   ///< are one piece behind it
  bool align_gradients = false;    ///< with overlap, in a pipeline: all stages start the sums of a
                                 ///< model chunk at the same time, and only the first chunk of the
                                 ///< first stage is cut into buckets (Megatron)
  bool overlap_parameters = false;  ///< parameters are gathered beside the next forward; else
                                    ///< behind the update
  bool align_parameters = false;    ///< with overlap, in an interleaved pipeline: all stages start
                                    ///< the gathers of a model chunk at the same time, one chunk
                                    ///< ahead (Megatron); else each starts a bucket ahead
  Bytes bucket = 25_MiB;            ///< of gradients; closes with the tensor that fills it
  Bytes first_bucket = 1_MiB;       ///< that backward fills first
  Bytes bucket_per_replica;  ///< buckets have at least so much for each data-parallel rank, so
                             ///< that a ring's pieces do not shrink (Megatron); 0: no growth
  bool reduce_each_micro_batch = true;  ///< where gradients are sharded: behind every micro-batch's
                                        ///< backward; else behind the last (no_sync), and each rank
                                        ///< holds all of them until then
  bool whole_sums = false;  ///< with `optimizer`, gradients are all-reduced in one piece behind
                            ///< backward, and each rank uses its part (nanotron)
  bool gather_fp8 = false;  ///< of a step in fp8, weights of products are gathered as such
  int units_ahead = 2;  ///< a unit is gathered when the one so many units before it has been freed
                        ///< (FSDP's limit_all_gathers); 0: no limit

  bool operator==(const DataParallel&) const = default;
};

}  // namespace tessera
