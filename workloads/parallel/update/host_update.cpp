#include "workloads/parallel/update/host_update.h"

#include "workloads/optimizers/multi_tensor.h"
#include "workloads/sharding.h"

namespace tessera {
namespace {

/// Bytes of a number in fp32.
constexpr std::int64_t kExact = 4;

}  // namespace

Bytes moved_by_host(const StepOptions& step, std::int64_t elements) {
  const std::int64_t gradients = (step.clip_gradients ? 3 : 1) * kExact;
  const std::int64_t states = 2 * kExact + 2 * 2 * element_bytes(step.formats.optimizer_states);
  const bool casts = gathers_units(step) && step.formats.parameters != Precision::fp32;
  const std::int64_t cast = casts ? kExact + element_bytes(step.formats.parameters) : 0;
  return Bytes((gradients + states + cast) * elements);
}

ProgramOp HostUpdate::copy(OpKind kind, Bytes bytes) const {
  ProgramOp op;
  op.kind = kind;
  op.stream = kind == OpKind::copy_out ? StreamKind::device_to_host : StreamKind::host_to_device;
  op.phase = Phase::optimizer;
  op.bytes = bytes;
  return op;
}

/// All at once, which makes an fp32 copy of the shard.
std::int32_t HostUpdate::take_gradients(std::int64_t elements) {
  const std::int64_t format = element_bytes(step_.formats.gradients);
  ProgramOp down = copy(OpKind::copy_out, Bytes(kExact * elements));
  if (format != kExact) {
    queue_.allocate(down.bytes);
    queue_.run(library_.cut({buffer_pass("gradients.to_fp32", Phase::optimizer,
                                         KernelKind::elementwise, elements, {format, kExact})},
                            "gradients.to_fp32"),
               -1, -1);
    down.freed = down.bytes;
  }
  down.waits = {queue_.last_kernels(), -1};
  return queue_.add(down);
}

void HostUpdate::run(std::int64_t elements, std::int32_t sums) {
  ProgramOp update;
  update.stream = StreamKind::host;
  update.phase = Phase::optimizer;
  update.segment = library_.host_segment("optimizer.on_cpu", moved_by_host(step_, elements));
  update.waits = {scatters_gradients(step_) ? sums : take_gradients(elements),
                  queue_.last_kernels()};
  if (offloads_parameters(step_)) return queue_.await(queue_.add(update), library_.empty_segment());
  const bool shards = gathers_units(step_);
  const std::int64_t format = element_bytes(step_.formats.parameters);
  ProgramOp up = copy(OpKind::copy_in, Bytes((shards ? format : kExact) * elements));
  up.waits = {queue_.add(update), -1};
  if (!shards) up.allocated = up.bytes;
  queue_.await(queue_.add(up), library_.empty_segment());
  if (shards) return;
  queue_.run(library_.cut({buffer_pass("parameters.from_host", Phase::optimizer,
                                       KernelKind::elementwise, elements, {kExact, format})},
                          "parameters.from_host"),
             -1, -1);
  queue_.free(up.bytes);
}

}  // namespace tessera
