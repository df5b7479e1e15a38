#pragma once

#include <filesystem>
#include <string>

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// A simulated step as a Chrome trace-event file, which ui.perfetto.dev and chrome://tracing open:
/// one process per GPU, one thread per stream, a slice per segment with its kernels inside, slices
/// for collectives and messages, an arrow from every send to its recv, and a memory counter per
/// GPU. Time stamps are exact to 1 ns. Equal timelines give equal bytes.
std::string perfetto_trace(const TimedProgram& timed, const Timeline& timeline);

/// Writes `perfetto_trace` to `path`, compressed where the name ends in ".gz". Throws InputError
/// where the file cannot be written.
void write_perfetto_trace(const std::filesystem::path& path, const TimedProgram& timed,
                          const Timeline& timeline);

}  // namespace tessera
