#include "workloads/memory/allocator_replay.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace tessera {
namespace {

/// Sizes of the rank's parameters [elements, in any unit].
std::vector<Bytes> parameters_of(const Program& program, const RankProgram& stage) {
  std::vector<Bytes> sizes;
  std::int32_t last_layer = -2, last_block = -2;
  for (const ProgramOp& op : stage.ops) {
    if (op.kind != OpKind::kernels || op.micro_batch != 0) continue;
    if (op.phase == Phase::backward) break;
    const Segment& segment = program.segment(op.segment);
    if (segment.block < 0 || (op.layer == last_layer && segment.block == last_block)) continue;
    last_layer = op.layer;
    last_block = segment.block;
    for (const Storage& storage : program.blocks[static_cast<std::size_t>(segment.block)].storages)
      if (storage.role == TensorRole::parameter) sizes.push_back(storage.bytes);
  }
  return sizes;
}

/// `bytes` divided as the parameters are.
void add_tensors(const std::vector<Bytes>& parameters, StaticTensor all,
                 std::vector<StaticTensor>& tensors) {
  if (all.bytes.value() == 0) return;
  Bytes sum;
  for (const Bytes size : parameters) sum += size;
  if (sum.value() == 0) return tensors.push_back(all);
  const double share = static_cast<double>(all.bytes.value()) / static_cast<double>(sum.value());
  for (const Bytes size : parameters)
    tensors.push_back({all.category, Bytes(static_cast<std::int64_t>(
                                         static_cast<double>(size.value()) * share))});
}

/// In the order in which a framework makes them: of every category as the parameters are divided,
/// then what libraries hold.
std::vector<StaticTensor> tensors_of(const CategoryBytes& parts,
                                     const std::vector<Bytes>& parameters, Bytes workspaces) {
  std::vector<StaticTensor> tensors;
  for (int c = 0; c < kMemoryCategories; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    add_tensors(parameters, {category, parts[category]}, tensors);
  }
  if (workspaces.value() > 0) tensors.push_back({MemoryCategory::workspace, workspaces});
  return tensors;
}

/// Of `launches` where something is known of them.
Seconds issued(const StepLaunches& launches, std::int32_t op) {
  return launches.empty() ? Seconds(0) : launches.issued_at(op);
}

/// `allocator` over the steps that tell how much a job reserves.
AllocatorReplay& run_job(AllocatorReplay& allocator, const Program& program, int stage,
                         const LaunchTimes& times) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  const int told = times.empty() ? telling_micro_batches(rank) : times.micro_batches;
  const auto replay = [&] {
    replay_memory(program, stage, told, [&](const MemoryStep& step) { allocator.add(step); });
  };
  // The step behind which moments are there is not like later ones.
  if (!times.empty() || !allocator.has_moments()) {
    replay();
    allocator.end_step(times.later);
  }
  replay();
  return allocator;
}

}  // namespace

AllocatorReplay::AllocatorReplay(const Program& program, int stage, const AllocatorSetting& setting,
                                 const StepLaunches& first_step)
    : program_(program),
      rank_(program.stages[static_cast<std::size_t>(stage)]),
      parameters_(parameters_of(program, rank_)),
      times_(&first_step),
      allocator_(setting.capacity),
      between_steps_(rank_.static_parts.total() + setting.workspaces),
      used_(between_steps_),
      peak_(used_),
      has_moments_(rank_.made_by_update == Bytes(0)) {
  CategoryBytes held = rank_.static_parts;
  held[MemoryCategory::optimizer] -= rank_.made_by_update;
  for (const StaticTensor& tensor : tensors_of(held, parameters_, setting.workspaces))
    allocator_.allocate(tensor.bytes);
}

void AllocatorReplay::add(const MemoryStep& step) {
  const bool updates = step.op >= rank_.update_begin;
  if (updates && !updates_) behind_passes_ = allocator_.reserved();
  updates_ = updates;
  if (updates) make_moments();
  if (step.allocates) {
    allocate(step.op, step.allocation);
  } else {
    free(step.op, step.allocation);
  }
  if (updates) behind_passes_ = std::max(behind_passes_, allocator_.reserved());
}

void AllocatorReplay::allocate(std::int32_t op, const Allocation& allocation) {
  const auto id = static_cast<std::size_t>(allocation.id);
  give_back(issued(*times_, op));
  if (!recorded_.empty() && !allocator_.has_room_for(allocation.bytes)) empty_cache();
  if (held_.size() <= id) held_.resize(2 * id + 64);
  held_[id] = allocator_.allocate(allocation.bytes);
  used_ += allocation.bytes;
  peak_ = std::max(peak_, used_);
}

void AllocatorReplay::free(std::int32_t op, const Allocation& allocation) {
  CachingAllocator::Handle& block = held_[static_cast<std::size_t>(allocation.id)];
  if (is_recorded(allocation))
    recorded_.push_back({times_->communicated_by(op), block});
  else
    allocator_.free(block);
  block = nullptr;
  used_ -= allocation.bytes;
}

void AllocatorReplay::end_step(const StepLaunches& next) {
  make_moments();
  give_back(Seconds(std::numeric_limits<double>::infinity()));
  for (CachingAllocator::Handle& block : held_)
    if (block != nullptr) allocator_.free(std::exchange(block, nullptr));
  used_ = between_steps_;
  updates_ = false;
  times_ = &next;
}

void AllocatorReplay::make_moments() {
  if (std::exchange(has_moments_, true)) return;
  std::vector<StaticTensor> tensors;
  const StaticTensor half{MemoryCategory::optimizer, Bytes(rank_.made_by_update.value() / 2)};
  for (int moment = 0; moment < 2; ++moment) add_tensors(parameters_, half, tensors);
  for (const StaticTensor& tensor : tensors) allocator_.allocate(tensor.bytes);
}

bool AllocatorReplay::is_recorded(const Allocation& allocation) const {
  if (times_->empty() || allocation.block < 0 || !allocation.storage.valid()) return false;
  const ProgramBlock& block = program_.blocks[static_cast<std::size_t>(allocation.block)];
  return block.storages[static_cast<std::size_t>(allocation.storage.index())].communicated;
}

void AllocatorReplay::give_back(Seconds time) {
  while (!recorded_.empty() && recorded_.front().free_from <= time) {
    allocator_.free(recorded_.front().block);
    recorded_.pop_front();
  }
}

void AllocatorReplay::empty_cache() {
  give_back(Seconds(std::numeric_limits<double>::infinity()));
  allocator_.give_back_free_segments();
}

std::vector<StaticTensor> static_tensors(const Program& program, int stage, Bytes workspaces) {
  const RankProgram& rank = program.stages[static_cast<std::size_t>(stage)];
  return tensors_of(rank.static_parts, parameters_of(program, rank), workspaces);
}

Bytes reserved_memory(const Program& program, int stage, const AllocatorSetting& setting,
                      const LaunchTimes& times) {
  AllocatorReplay allocator(program, stage, setting, times.first);
  return run_job(allocator, program, stage, times).reserved(setting.planned);
}

Bytes reserved_behind_passes(const Program& program, int stage, const AllocatorSetting& setting,
                             const LaunchTimes& times) {
  AllocatorReplay allocator(program, stage, setting, times.first);
  return run_job(allocator, program, stage, times).reserved_behind_passes();
}

}  // namespace tessera
