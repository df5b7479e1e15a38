#include "sim/report/text/program_text.h"

#include <string_view>

#include "hw/units/formatted.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

std::string waits_text(const ProgramOp& op) {
  std::string text;
  for (const std::int32_t wait : op.waits) {
    if (wait >= 0) text += (text.empty() ? " after " : ", ") + std::to_string(wait);
  }
  return text;
}

/// What the op works on: a segment, a group's buffer, or a message.
std::string object_text(const Program& program, const ProgramOp& op) {
  const std::string bytes = std::to_string(op.bytes.value()) + " B";
  switch (op.kind) {
    case OpKind::kernels:
      return program.segment(op.segment).name;
    case OpKind::send:
      return "to stage " + std::to_string(op.peer_stage) + ", " + bytes;
    case OpKind::recv:
      return "from stage " + std::to_string(op.peer_stage) + ", " + bytes;
    case OpKind::copy_out:
    case OpKind::copy_in:
      return bytes;
    default:
      return std::string(label_of(op.group)) + " group, " + bytes;
  }
}

std::string op_line(const Program& program, const ProgramOp& op, std::size_t index) {
  const std::string object =
      object_text(program, op) + waits_text(op) + (op.host_sync ? ", host waits" : "");
  return text_line("%6zu  %-13s  %-10s  %11d  %5d  %s", index, label_of(op.stream).data(),
                   label_of(op.kind).data(), op.micro_batch, op.layer, object.c_str());
}

std::string kernel_line(const KernelLaunch& launch, Seconds duration) {
  const Kernel& kernel = launch.kernel;
  return text_line("    %-38s %-13s %-30s %10.3f %10.3f %11.2f", launch.name.c_str(),
                   label_of(kernel.kind).data(), shape_label(kernel).c_str(),
                   kernel.flops.value() * 1e-9, static_cast<double>(kernel.bytes().value()) * 1e-6,
                   duration.value() * 1e6);
}

}  // namespace

std::string program_text(const Program& program) {
  std::string text;
  for (const RankProgram& stage : program.stages) {
    text += text_line("stage %d: %lld parameters, %lld B static memory", stage.stage,
                      static_cast<long long>(stage.parameters),
                      static_cast<long long>(stage.static_memory.value()));
    text += text_line("%6s  %-13s  %-10s  %11s  %5s  %s", "op", "stream", "kind", "micro-batch",
                      "layer", "what");
    for (std::size_t i = 0; i < stage.ops.size(); ++i) text += op_line(program, stage.ops[i], i);
  }
  return text;
}

std::string timed_program_text(const TimedProgram& timed) {
  std::string text = text_line("    %-38s %-13s %-30s %10s %10s %11s", "kernel", "kind", "shape",
                               "GFLOP", "MB", "us");
  for (std::size_t i = 0; i < timed.segments.size(); ++i) {
    const Segment& segment = timed.program.segments[i];
    text += text_line("%s: %.3f ms, %zu kernels, host %.3f ms", segment.name.c_str(),
                      timed.segments[i].duration.value() * 1e3, segment.kernels.size(),
                      timed.segments[i].host_time.value() * 1e3);
    for (std::size_t k = 0; k < segment.kernels.size(); ++k) {
      text += kernel_line(segment.kernels[k], timed.segments[i].kernel_durations[k]);
    }
  }
  return text;
}

}  // namespace tessera
