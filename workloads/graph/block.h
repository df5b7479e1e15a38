#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/graph/tensor.h"
#include "workloads/program/kernel.h"
#include "workloads/program/program.h"

namespace tessera {

enum class GraphOpKind : std::uint8_t {
  kernel,
  view,        ///< costs the host a framework call, the GPU nothing
  collective,  ///< starts; `wait` ends it
  wait,        ///< later operators need the collectives before it
  host_sync,   ///< the host waits for everything before it
};

/// A whole read or write of (a window on) a storage.
struct Access {
  StorageId storage;
  Bytes bytes;
};

/// One operator call of a block, in launch order.
struct GraphOp {
  GraphOpKind kind = GraphOpKind::kernel;
  Phase phase = Phase::forward;
  std::string name;
  Kernel kernel;              ///< for `kernel`
  std::vector<Access> reads;  ///< for `kernel` and `collective`
  std::vector<Access> writes;
  OpKind collective = OpKind::all_reduce;  ///< for `collective`
  GroupKind group = GroupKind::tensor;     ///< for `collective`
  Bytes bytes;                             ///< for `collective`: as ProgramOp::bytes
  /// Adds a parameter's gradient to what earlier micro-batches left; dropped where there is none.
  bool accumulates_gradient = false;
  bool recomputed = false;  ///< runs again what forward ran already
  /// Of a backward operator: index in `forward` of the operator whose derivative it computes. -1:
  /// none (gradients that meet), or the block is fused.
  int origin = -1;
  /// Of `reads`: what of each element one bit is enough of, as of a mask; invalid: none.
  StorageId bits;
  std::vector<StorageId> unnamed;  ///< live at least until this operator ran: `Tape::drop_names`
  int host_calls = 1;              ///< framework calls or launches that the operator costs the host
  Bytes allocated;  ///< before the operator runs, as the allocator counts; set by `plan_memory`
  Bytes freed;      ///< after it ran; set by `plan_memory`
  std::vector<StorageId> allocates;  ///< that make up `allocated` (an optimizer's have no storage)
  std::vector<StorageId> frees;
};

/// A part of a model that is built once and runs as often as the model repeats it: the embedding, a
/// layer, the head.
struct Block {
  std::string name;
  std::vector<Storage> storages;
  std::vector<GraphOp> forward;
  std::vector<GraphOp> backward;  ///< empty where nothing is differentiated
  std::int64_t parameters =
      0;  ///< elements, of one rank; tied ones count where they are first used
  std::int64_t fp8_parameters = 0;     ///< of these, of products whose weights come in FP8
  std::int64_t expert_parameters = 0;  ///< of these, of experts that other replicas do not hold
  std::int64_t cast_parameters = 0;    ///< of these, weights of which both orders are kept in the
                                       ///< format of products
  std::vector<std::int64_t> parameter_sizes;  ///< of these, by tensor; experts of a layer are one
  std::int64_t frozen_parameters = 0;   ///< elements beside `parameters` that nothing trains, held
                                        ///< and gathered as those are; elsewhere in `buffers`
  std::int64_t partial_parameters = 0;  ///< of `parameters`: tensor-parallel ranks hold the same,
                                        ///< each with the gradient of its part of the sequence
  bool waits_on_host = false;           ///< what it saved is copied to host memory and back
  Bytes saved;                          ///< activations that wait for backward
  Bytes buffers;  ///< persistent, besides parameters, gradients and optimizer states

  const Storage& storage(StorageId id) const {
    return storages[static_cast<std::size_t>(id.index())];
  }
};

/// Sets allocations and frees of every operator from the first and last use of each storage, the
/// roles of storages, and `Block::saved`.
void plan_memory(Block& block);

/// Arithmetic that counts as the model's: of matrix products, convolutions and fused attention.
bool counts_as_model_flops(const Kernel& kernel);

/// Number of kernels, their HBM traffic and the arithmetic of their GEMMs.
struct OpTotals {
  int kernels = 0;
  Bytes bytes;
  Flops gemm_flops;
};
OpTotals total(const std::vector<GraphOp>& ops);

}  // namespace tessera
