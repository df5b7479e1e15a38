#include "sim/engine/device/gpu.h"

#include <algorithm>
#include <utility>

#include "sim/engine/memory/tensor_keeper.h"

namespace tessera {

Gpu::Gpu(int rank, const StageQueues& queues, const DeviceContext& context,
         std::span<OpRecord> records, MemorySamples samples, const StageMemory* memory)
    : context_(context),
      program_(context.timed.program.program_of(rank)),
      number_(context.timed.program.program_number(rank)),
      queues_(queues),
      records_(records),
      left_(program_.ops.size()),
      rank_(rank),
      memory_(rank, program_.static_memory + context.timed.library_memory.allocator.workspaces,
              samples) {
  if (context.timed.single_hardware_queue) in_turn_ = queues_.queued_from.front();
  if (memory != nullptr) pressure_ = make_keeper(memory_host(), *memory);
  for (int stream = 0; stream < kStreamCount; ++stream) {
    streams_.emplace_back(*this, static_cast<StreamKind>(stream),
                          queues.of_stream[static_cast<std::size_t>(stream)]);
  }
}

MemoryHost Gpu::memory_host() {
  return {.rank = rank_,
          .program = program_,
          .timed = context_.timed,
          .clock = context_.clock,
          .ledger = memory_,
          .plan = context_.plan,
          .transfers = context_.transfers,
          .room_changed = [this] { room_changed(); }};
}

void Gpu::next_in_queue() {
  in_turn_ = queues_.queued_from[static_cast<std::size_t>(in_turn_) + 1];
  if (static_cast<std::size_t>(in_turn_) == program_.ops.size()) return;
  streams_[static_cast<std::size_t>(this->op(in_turn_).stream)].advance();
}

void Gpu::advance() {
  for (Stream& stream : streams_) stream.advance();
}

void Gpu::when_ended(std::int32_t op, Action action) {
  host_waits_for_ = op;
  wake_host_ = std::move(action);
}

std::int32_t Gpu::first_missing(std::int32_t op) const {
  for (const std::int32_t awaited : this->op(op).waits) {
    if (awaited >= 0 && !has_ended(awaited)) return awaited;
  }
  return -1;
}

void Gpu::change_load(const DeviceLoad& from, const DeviceLoad& to) {
  if (from == to) return;
  loads_.change(from, to);
  with_kernels_.for_each([this](std::size_t stream) { streams_[stream].change_pace_of_kernels(); });
  change_pace_of_collectives();
}

void Gpu::set_pace_of_collectives() {
  double stretch = 1;
  if (loads_.sum().bandwidth > 0) {
    with_kernels_.for_each([this, &stretch](std::size_t stream) {
      const KernelsBeside kernels(loads_.sum(), streams_[stream].product_share());
      stretch = std::max(stretch, kernels.stretch_of_collectives());
    });
  }
  if (stretch == stretch_of_collectives_) return;
  stretch_of_collectives_ = stretch;
  for (Stream& stream : streams_) stream.change_pace_of_collective();
}

void Gpu::room_changed() {
  waiting_.for_each([this](std::size_t stream) {
    if (streams_[stream].awaits(kRoom)) streams_[stream].advance();
  });
}

void Gpu::rerun_ended() {
  pressure_->rerun_ended();
  room_changed();
}

void Gpu::end(std::int32_t op) {
  last_end_ = context_.clock.now();
  if (pressure_) pressure_->ended(op);
  waiting_.for_each([this, op](std::size_t stream) {
    if (streams_[stream].awaits(op)) streams_[stream].advance();
  });
  if (pressure_) room_changed();
  if (--left_ == 0 && context_.on_gpu_end) context_.on_gpu_end();
  if (op != host_waits_for_) return;
  host_waits_for_ = -1;
  std::exchange(wake_host_, nullptr)();
}

std::vector<std::string> Gpu::blocked() const {
  std::vector<std::string> lines;
  for (const Stream& stream : streams_) {
    if (const auto line = stream.blocked()) lines.push_back(*line);
  }
  return lines;
}

}  // namespace tessera
