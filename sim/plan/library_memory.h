#pragma once

#include "hw/node.h"
#include "hw/units/quantity.h"
#include "workloads/memory/memory_profile.h"
#include "workloads/step_options.h"

namespace tessera {

/// Memory of a GPU that no tensor of the step is in.
struct LibraryMemory {
  AllocatorSetting allocator;  ///< with the workspaces of cuBLAS and Transformer Engine
  Bytes context;               ///< CUDA context and loaded kernels, outside of the allocator
  Bytes communicators;         ///< buffers of NCCL, outside of the allocator
};

/// A cuBLAS workspace belongs to a handle and a stream, and autograd's thread has a handle of its
/// own: two are held where backward runs. PyTorch asks for 4096 KiB twice and 16 KiB eight times,
/// from Hopper on and for deterministic algorithms for 32 MiB
/// (aten/src/ATen/cuda/CublasHandlePool.cpp). Transformer Engine's products hold 4 MiB, 32 MiB from
/// Hopper on (transformer_engine/pytorch/module/base.py). A communicator of NCCL holds, for every
/// channel and every peer that it receives from (one in the ring, two in the tree), buffers of 4
/// MiB (simple), 512 KiB (LL) and 4.7 MiB (LL128) (src/include/device.h); over the network the
/// sending side has them too. Channels: 24 over NVSwitch, 12 over other NVLinks, 8 over the
/// network. One communicator for each of the groups with members and one for all ranks.
LibraryMemory library_memory(const StepOptions& step, const NodeSpec& node);

}  // namespace tessera
