#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hw/units/quantity.h"
#include "workloads/memory/memory_bytes.h"

namespace tessera {

/// What an allocator's memory was taken for, as far as a snapshot tells.
enum class SnapshotUse : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  temporary,
  buffers,
  workspace,
  unknown,  ///< allocated before the recording began, or without a stack
};
constexpr int kSnapshotUses = 8;
std::string_view name_of(SnapshotUse use);
constexpr SnapshotUse use_of(MemoryCategory category) {
  return static_cast<SnapshotUse>(category);
}

enum class SnapshotAction : std::uint8_t { take, give_back, new_segment, end_segment };

/// One line of the allocator's trace.
struct SnapshotEvent {
  SnapshotAction action = SnapshotAction::take;
  std::int64_t address = 0;
  Bytes bytes;  ///< as the allocator counts
  std::int64_t stream = 0;
  SnapshotUse use = SnapshotUse::unknown;  ///< of what is taken
  std::int32_t label = -1;                 ///< in `MemorySnapshot::labels`
  bool told = false;                       ///< the use is the recorder's own word
};

struct SnapshotBlock {
  std::int64_t address = 0;
  Bytes bytes;
  bool active = false;
  SnapshotUse use = SnapshotUse::unknown;
  std::int32_t label = -1;
  bool told = false;
};
/// What the allocator got from the device in one piece.
struct SnapshotSegment {
  std::int64_t address = 0;
  Bytes bytes;
  std::int64_t stream = 0;
  bool small = false;
  std::vector<SnapshotBlock> blocks;  ///< that fill it, in order
};

/// What torch.cuda.memory._snapshot says of one device: what is there at its end, and what was
/// recorded until then.
struct MemorySnapshot {
  std::vector<SnapshotSegment> segments;
  std::vector<SnapshotEvent> events;
  std::vector<std::string> labels;  ///< who took memory: "layer.attention.q", "model.py:12 forward"
};

/// The devices of a snapshot that a file of torch.cuda.memory._dump_snapshot holds, or of an older
/// list of segments. Uses follow from entries' `category` where they have one, else from stacks:
/// torch/optim is the optimizer, autograd's backward makes what is temporary, or gradients where it
/// lives on into the next forward pass or to the end; what modules are made and moved by is
/// parameters; the rest is activations. Throws InputError for whatever is wrong, with the place.
std::vector<MemorySnapshot> read_memory_snapshot(std::string contents, const std::string& name);

/// A pickle of protocol 4 that torch.load-free readers and PyTorch's memory_viz page open.
std::string to_pickle(const MemorySnapshot& snapshot);

/// The moment at which most was taken.
struct SnapshotPeak {
  Bytes allocated;
  Bytes reserved;  ///< highest, at another moment maybe
  std::vector<Bytes> of_uses = std::vector<Bytes>(kSnapshotUses);  ///< at the peak of `allocated`
};
SnapshotPeak peak_of(const MemorySnapshot& snapshot);

}  // namespace tessera
