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

/// Process and thread under which a viewer files an event.
struct TraceTrack {
  int process = 0;
  int thread = 0;
};

/// Writes events of the Chrome trace-event format into one buffer. Arguments named `json` are valid
/// JSON already.
/// Source: Google, "Trace Event Format" (JSON object format).
class TraceEventWriter {
 public:
  TraceEventWriter();

  /// A complete event. Slices of a track nest or follow each other. Its arguments are the members
  /// `op_args`, and `own_args` with a comma before each: kernels of one op share the former.
  void slice(TraceTrack track, std::string_view name_json, std::string_view category,
             Nanoseconds begin, Nanoseconds end, std::string_view op_args,
             std::string_view own_args);
  /// An arrow from a slice around `from_time` to a slice around `to_time`.
  void arrow(std::int64_t id, TraceTrack from, Nanoseconds from_time, TraceTrack to,
             Nanoseconds to_time);
  void memory_counter(int process, Nanoseconds time, Bytes used);
  /// Name and place of a process or thread: `what` is "process_name" with the key "name",
  /// "thread_sort_index" with "sort_index", ...
  void metadata(TraceTrack track, std::string_view what, std::string_view key,
                std::string_view value_json);

  /// The whole file; the writer is empty afterwards.
  std::string finish();

 private:
  void begin_event(char phase, TraceTrack track);
  void microseconds(std::string_view key, Nanoseconds time);
  void integer(std::int64_t value);
  void flow_end(char phase, std::int64_t id, TraceTrack track, Nanoseconds time);

  std::string text_;
  bool first_ = true;
};

}  // namespace tessera
