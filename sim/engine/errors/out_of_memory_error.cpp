#include "sim/engine/errors/out_of_memory_error.h"

#include "sim/engine/errors/message_with_lines.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

/// Rounded up.
std::string mebibytes(Bytes bytes) {
  constexpr std::int64_t kMebibyte = 1 << 20;
  return std::to_string((bytes.value() + kMebibyte - 1) / kMebibyte) + " MiB";
}

}  // namespace

OutOfMemoryError::OutOfMemoryError(const std::vector<std::string>& lines)
    : std::runtime_error(with_lines("out of memory:", lines)) {}

void check_static_memory(const TimedProgram& timed) {
  const Bytes limit = timed.memory_limit.bytes;
  std::vector<std::string> lines;
  for (const RankProgram& stage : timed.program.stages) {
    const Bytes held = stage.static_memory + timed.library_memory.allocator.workspaces;
    if (held <= limit) continue;
    lines.push_back("stage " + std::to_string(stage.stage) + " holds " + mebibytes(held) +
                    " all the time, " + mebibytes(held - limit) + " more than the limit of " +
                    mebibytes(limit));
  }
  if (!lines.empty()) throw OutOfMemoryError(lines);
}

std::string text_of(const MemoryShortage& shortage, const TimedProgram& timed) {
  const int stage = position_of(shortage.rank, timed.program.layout).pipeline;
  const ProgramOp& op =
      timed.program.program_of(shortage.rank).ops[static_cast<std::size_t>(shortage.op)];
  const bool kernels = op.kind == OpKind::kernels;
  std::string text = "gpu " + std::to_string(shortage.rank) + " (stage " + std::to_string(stage) +
                     ") op " + std::to_string(shortage.op) + " (";
  text += kernels ? timed.program.segment(op.segment).name : std::string(label_of(op.kind));
  if (op.micro_batch >= 0) text += " of micro-batch " + std::to_string(op.micro_batch);
  text += ") needs " + mebibytes(shortage.needed) + ", " + mebibytes(shortage.missing) +
          " more than there is: the limit is " + mebibytes(timed.memory_limit.bytes);
  if (!timed.memory_limit.swap) text += ", and memory.swap is false";
  return text;
}

}  // namespace tessera
