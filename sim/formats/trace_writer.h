#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hw/units/quantity.h"

namespace tessera {

/// Time of a trace in whole nanoseconds.
using Nanoseconds = std::int64_t;
Nanoseconds to_nanoseconds(Seconds time);

/// `text` as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

/// Process and thread under which a viewer files an event; both count from 1.
struct TraceTrack {
  int process = 0;
  int thread = 0;
};

/// Collects the events of a trace in one format. Arguments named `json` are valid JSON already:
/// what many events have in common is escaped once.
class TraceWriter {
 public:
  virtual ~TraceWriter() = default;

  /// Tracks are named before their events. Viewers sort them by number.
  virtual void name_process(int process, std::string_view name_json) = 0;
  virtual void name_thread(TraceTrack track, std::string_view name_json) = 0;
  /// A complete event. Slices of a track come in order of their begin, an outer one before those
  /// inside it, and nest or follow each other. `colour` is a name of a viewer's, or empty. Its
  /// arguments are the members `op_args`, and `own_args` with a comma before each: kernels of one
  /// op share the former.
  virtual void slice(TraceTrack track, std::string_view name_json, std::string_view category,
                     std::string_view colour, Nanoseconds begin, Nanoseconds end,
                     std::string_view op_args, std::string_view own_args) = 0;
  /// An arrow from a slice around `from_time` to a slice around `to_time`.
  virtual void arrow(std::int64_t id, TraceTrack from, Nanoseconds from_time, TraceTrack to,
                     Nanoseconds to_time) = 0;
  virtual void memory_counter(int process, Nanoseconds time, Bytes used) = 0;
  /// A value of a counter, which `number` (from 1) tells from others of its process; `unit` is part
  /// of `name_json` too.
  virtual void counter(int process, int number, std::string_view name_json, std::string_view unit,
                       Nanoseconds time, std::int64_t value) = 0;
  /// The whole file; the writer is empty afterwards.
  virtual std::string finish() = 0;
};

}  // namespace tessera
