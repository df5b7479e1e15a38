#include "sim/formats/trace_event_writer.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tessera {

Nanoseconds to_nanoseconds(Seconds time) {
  return std::llround(time.value() * 1e9);
}

std::string json_string(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

TraceEventWriter::TraceEventWriter() : text_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") {}

void TraceEventWriter::name_process(int process, std::string_view name_json) {
  metadata({process, 0}, "process_name", "name", name_json);
  metadata({process, 0}, "process_sort_index", "sort_index", std::to_string(process - 1));
}

void TraceEventWriter::name_thread(TraceTrack track, std::string_view name_json) {
  metadata(track, "thread_name", "name", name_json);
  metadata(track, "thread_sort_index", "sort_index", std::to_string(track.thread));
}

void TraceEventWriter::slice(TraceTrack track, std::string_view name_json,
                             std::string_view category, std::string_view colour, Nanoseconds begin,
                             Nanoseconds end, std::string_view op_args, std::string_view own_args) {
  begin_event('X', track);
  microseconds("ts", begin);
  microseconds("dur", end - begin);
  text_ += ",\"cat\":\"";
  text_ += category;
  if (!colour.empty()) text_ += "\",\"cname\":\"";
  text_ += colour;
  text_ += "\",\"name\":";
  text_ += name_json;
  text_ += ",\"args\":{";
  text_ += op_args;
  text_ += own_args;
  text_ += "}}";
}

void TraceEventWriter::arrow(std::int64_t id, TraceTrack from, Nanoseconds from_time, TraceTrack to,
                             Nanoseconds to_time) {
  flow_end('s', id, from, from_time);
  flow_end('f', id, to, to_time);
}

void TraceEventWriter::flow_end(char phase, std::int64_t id, TraceTrack track, Nanoseconds time) {
  begin_event(phase, track);
  microseconds("ts", time);
  text_ += ",\"id\":";
  integer(id);
  if (phase == 'f') text_ += ",\"bp\":\"e\"";  // binds to the slice around the time, not the next
  text_ += ",\"cat\":\"message\",\"name\":\"message\"}";
}

void TraceEventWriter::memory_counter(int process, Nanoseconds time, Bytes used) {
  begin_event('C', {process, 0});
  microseconds("ts", time);
  text_ += ",\"name\":\"memory\",\"args\":{\"bytes\":";
  integer(used.value());
  text_ += "}}";
}

void TraceEventWriter::counter(int process, int /*number*/, std::string_view name_json,
                               std::string_view unit, Nanoseconds time, std::int64_t value) {
  begin_event('C', {process, 0});
  microseconds("ts", time);
  text_ += ",\"name\":";
  text_ += name_json;
  text_ += ",\"args\":{\"";
  text_ += unit;
  text_ += "\":";
  integer(value);
  text_ += "}}";
}

void TraceEventWriter::metadata(TraceTrack track, std::string_view what, std::string_view key,
                                std::string_view value_json) {
  begin_event('M', track);
  text_ += ",\"name\":\"";
  text_ += what;
  text_ += "\",\"args\":{\"";
  text_ += key;
  text_ += "\":";
  text_ += value_json;
  text_ += "}}";
}

std::string TraceEventWriter::finish() {
  text_ += "\n]}\n";
  return std::exchange(text_, {});
}

void TraceEventWriter::begin_event(char phase, TraceTrack track) {
  text_ += std::exchange(first_, false) ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
  text_ += phase;
  text_ += "\",\"pid\":";
  integer(track.process);
  text_ += ",\"tid\":";
  integer(track.thread);
}

/// The format counts in microseconds; three decimals keep the nanoseconds.
void TraceEventWriter::microseconds(std::string_view key, Nanoseconds time) {
  text_ += ",\"";
  text_ += key;
  text_ += "\":";
  integer(time / 1000);
  const auto rest = static_cast<int>(time % 1000);
  if (rest == 0) return;
  text_ += '.';
  text_ += static_cast<char>('0' + rest / 100);
  text_ += static_cast<char>('0' + rest / 10 % 10);
  text_ += static_cast<char>('0' + rest % 10);
}

void TraceEventWriter::integer(std::int64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text_.append(digits, end);
}

}  // namespace tessera
