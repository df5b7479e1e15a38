// Gradients that the CPU keeps (StepOptions::offload_optimizer), where they are scattered.
#include "workloads/optimizers/multi_tensor.h"
#include "workloads/parallel/gradient_reduction.h"

namespace tessera {
namespace {

/// Bytes of a number in fp32, in which the CPU updates.
constexpr std::int64_t kSummed = 4;

GraphOp over(const char* name, std::int64_t elements, PassTraffic traffic) {
  return buffer_pass(name, Phase::gradient_reduction, KernelKind::elementwise, elements, traffic);
}

}  // namespace

void GradientReduction::rewrite(const GraphOp& op, std::int64_t format, std::int32_t after,
                                ShardSum& sum) {
  run_kernels(op, sum.group, sum.micro_batch, sum.freed, after);
  sum.summed = format;
  sum.freed = Bytes(format * sum.elements);
  sum.reduced = true;
}

/// Sums of later micro-batches come back, and go again with what was added; the last ones are cast
/// for the update. Source: DeepSpeed runtime/zero/stage_1_and_2.py,
/// async_accumulate_grad_in_cpu_via_gpu and async_inplace_copy_grad_to_fp32_buffer_from_gpu
/// (recalled). Where the weights are FSDP2's on the host, the CPU adds them there instead
/// (recalled: torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce).
void GradientReduction::move_to_host(ShardSum sum, const Turn& turn) {
  const auto ready = [&] {
    const std::int32_t last = sum.group == GroupKind::replica ? last_replica_ : last_;
    return sum.reduced ? last : -1;
  };
  ProgramOp copy;
  copy.phase = Phase::gradient_reduction;
  copy.micro_batch = sum.micro_batch;
  const bool by_cpu = offloads_parameters(step_) && step_.framework.copies_gathered;
  if (adds(turn) && !by_cpu) {
    copy.kind = OpKind::copy_in;
    copy.stream = StreamKind::host_to_device;
    copy.bytes = copy.allocated = Bytes(kept_ * sum.elements);
    copy.waits = {queue_.last_kernels(), ready()};
    rewrite(over("gradients.accumulate", sum.elements, {sum.summed + kept_, kept_}), kept_,
            queue_.add(copy), sum);
  }
  if ((turn.last || by_cpu) && sum.summed != kSummed) {
    queue_.allocate(Bytes(kSummed * sum.elements));
    rewrite(over("gradients.to_fp32", sum.elements, {sum.summed, kSummed}), kSummed, ready(), sum);
  }
  copy.kind = OpKind::copy_out;
  copy.stream = StreamKind::device_to_host;
  copy.bytes = Bytes(sum.summed * sum.elements);
  copy.allocated = Bytes(0);
  copy.freed = sum.freed;
  copy.waits = {queue_.last_kernels(), ready()};
  last_ = queue_.add(copy);
  if (adds(turn) && by_cpu) last_ = add_on_host(sum);
}

std::int32_t GradientReduction::add_on_host(const ShardSum& sum) {
  constexpr std::int64_t kMoved = 3 * kSummed;  // two are read, one is written
  ProgramOp add;
  add.stream = StreamKind::host;
  add.phase = Phase::gradient_reduction;
  add.micro_batch = sum.micro_batch;
  add.segment = library_.host_segment("gradients.add_on_cpu", Bytes(kMoved * sum.elements));
  add.waits = {last_, -1};
  return queue_.add(add);
}

}  // namespace tessera
