#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "workloads/memory/memory_bytes.h"
#include "workloads/program/program.h"

namespace tessera {

/// A piece of memory that a rank's program allocates.
struct Allocation {
  std::int64_t id = 0;  ///< in the order of allocation, from 0
  Bytes bytes;          ///< as the allocator counts them
  MemoryCategory category = MemoryCategory::activations;
  std::int32_t block = -1;  ///< in `Program::blocks`; -1: of the optimizer
  StorageId storage;        ///< of that block; invalid: of the optimizer or a message
  std::int32_t layer = -1;
  std::int32_t micro_batch = -1;
};

/// One allocation or release, in the order of the compute stream.
struct MemoryStep {
  std::int32_t op = 0;      ///< in `RankProgram::ops`
  std::int32_t kernel = 0;  ///< kernels of the segment that were launched before
  bool allocates = true;
  Allocation allocation;
};

/// What happens to the memory of a rank, step by step.
class MemoryVisitor {
 public:
  virtual ~MemoryVisitor() = default;
  virtual void step(const MemoryStep& step) = 0;
  /// `op` needs an allocation that an earlier op made, and may write it.
  virtual void use(std::int32_t op, const Allocation& allocation, bool writes) = 0;
};

/// Calls `visit` for every allocation and release that the program of `stage` makes besides its
/// static memory, with the rules by which the engine counts: outputs are allocated when an operator
/// is launched, and freed behind the last operator that uses them.
/// Micro-batches beyond `micro_batches` (< 0: none) are left out; they repeat what earlier ones do.
void replay_memory(const Program& program, int stage, int micro_batches,
                   const std::function<void(const MemoryStep&)>& visit);
/// The same with the uses in between.
void replay_memory(const Program& program, int stage, MemoryVisitor& visitor);

/// Enough micro-batches for every peak of `stage`: twice those that are in flight at once.
int telling_micro_batches(const RankProgram& stage);

/// "layer.attention.qkv".
std::string name_of(const Allocation& allocation, const Program& program);

}  // namespace tessera
