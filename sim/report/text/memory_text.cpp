#include "sim/report/text/memory_text.h"

#include "hw/units/formatted.h"
#include "workloads/memory/memory_profile.h"

namespace tessera {
namespace {

double mebibytes(Bytes bytes) {
  return static_cast<double>(bytes.value()) / (1 << 20);
}

std::string place_of_peak(const Program& program, int stage, const MemoryProfile& profile) {
  if (profile.peak_op < 0) return "at all times";
  const ProgramOp& op = program.stages[static_cast<std::size_t>(stage)]
                            .ops[static_cast<std::size_t>(profile.peak_op)];
  const Segment& segment = program.segment(op.segment);
  const auto kernel = static_cast<std::size_t>(profile.peak_kernel);
  std::string text = "in " + segment.name;
  if (kernel < segment.kernels.size()) text += ", " + segment.kernels[kernel].name;
  if (op.layer >= 0) text += ", layer " + std::to_string(op.layer);
  if (op.micro_batch >= 0) text += ", micro-batch " + std::to_string(op.micro_batch);
  return text;
}

}  // namespace

std::string memory_text(const Program& program, const LibraryMemory& libraries) {
  std::string text;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    const int stage = static_cast<int>(s);
    const MemoryProfile profile = profile_memory(program, stage, libraries.allocator);
    const Bytes device = profile.reserved + libraries.context + libraries.communicators;
    text +=
        text_line("stage %d: %.1f MiB allocated, %.1f MiB reserved, %.1f MiB of the device", stage,
                  mebibytes(profile.peak), mebibytes(profile.reserved), mebibytes(device));
    text += "  peak " + place_of_peak(program, stage, profile) + "\n";
    for (int c = 0; c < kMemoryCategories; ++c) {
      const auto category = static_cast<MemoryCategory>(c);
      if (profile.at_peak[category].value() == 0) continue;
      text += text_line("  %-12s %12.2f MiB", std::string(name_of(category)).c_str(),
                        mebibytes(profile.at_peak[category]));
    }
    for (const LiveMemory& entry : profile.live) {
      text += text_line("    %10.2f MiB %5d x %-12s %s", mebibytes(entry.bytes), entry.count,
                        std::string(name_of(entry.category)).c_str(), entry.name.c_str());
    }
  }
  return text;
}

}  // namespace tessera
