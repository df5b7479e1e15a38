#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sim/plan/timed_program.h"
#include "sim/trace/timeline.h"

namespace tessera {

/// JSON for every viewer, or Perfetto's own Protobuf: for ui.perfetto.dev alone.
enum class TraceFormat : std::uint8_t { json, native };

/// The events alone, or with what was found out about them: the critical path as a track of its
/// own, and what the busiest links carried, as counters.
enum class TraceContent : std::uint8_t { events, findings };

/// A simulated step as a Chrome trace-event file, which ui.perfetto.dev and chrome://tracing open,
/// or as a native one: one process per GPU, one thread per stream, a slice per segment with its
/// kernels inside, slices for collectives and messages, an arrow from every send to its recv, and a
/// memory counter per GPU. Kernels have their share of the roofline. Time stamps are exact to 1 ns.
/// Equal timelines give equal bytes.
std::string perfetto_trace(const TimedProgram& timed, const Timeline& timeline,
                           TraceFormat format = TraceFormat::json,
                           TraceContent content = TraceContent::events);

/// native for names that end in .pftrace or .perfetto-trace, also with .gz behind it; else JSON.
TraceFormat trace_format_of(const std::filesystem::path& path);

/// Writes `perfetto_trace` with its findings to `path` in the format of its name, compressed where
/// it ends in ".gz". Throws InputError where the file cannot be written.
void write_perfetto_trace(const std::filesystem::path& path, const TimedProgram& timed,
                          const Timeline& timeline);

}  // namespace tessera
