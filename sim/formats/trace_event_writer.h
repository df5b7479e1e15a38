#pragma once

#include <string>
#include <string_view>

#include "sim/formats/trace_writer.h"

namespace tessera {

/// Events in the Chrome trace-event format.
/// Source: Google, "Trace Event Format" (JSON object format).
class TraceEventWriter : public TraceWriter {
 public:
  TraceEventWriter();

  void name_process(int process, std::string_view name_json) override;
  void name_thread(TraceTrack track, std::string_view name_json) override;
  void slice(TraceTrack track, std::string_view name_json, std::string_view category,
             std::string_view colour, Nanoseconds begin, Nanoseconds end, std::string_view op_args,
             std::string_view own_args) override;
  void arrow(std::int64_t id, TraceTrack from, Nanoseconds from_time, TraceTrack to,
             Nanoseconds to_time) override;
  void memory_counter(int process, Nanoseconds time, Bytes used) override;
  void counter(int process, int number, std::string_view name_json, std::string_view unit,
               Nanoseconds time, std::int64_t value) override;
  std::string finish() override;

 private:
  /// Name or place of a process or thread: `what` is "process_name" with the key "name",
  /// "thread_sort_index" with "sort_index", ...
  void metadata(TraceTrack track, std::string_view what, std::string_view key,
                std::string_view value_json);
  void begin_event(char phase, TraceTrack track);
  void microseconds(std::string_view key, Nanoseconds time);
  void integer(std::int64_t value);
  void flow_end(char phase, std::int64_t id, TraceTrack track, Nanoseconds time);

  std::string text_;
  bool first_ = true;
};

}  // namespace tessera
