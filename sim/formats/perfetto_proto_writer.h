#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/formats/trace_writer.h"

namespace tessera {
namespace perfetto::wire {
class Packet;
class TrackEvent;
}  // namespace perfetto::wire

/// Events as Perfetto's own trace (Protobuf): a third of the size of JSON, which matters to the
/// memory of a viewer. Names are interned; arguments stay JSON (`legacy_json_value`); arrows join
/// instants. Its messages: perfetto.proto.
class PerfettoProtoWriter : public TraceWriter {
 public:
  PerfettoProtoWriter();

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
  using Track = std::uint64_t;

  static Track uuid(TraceTrack track);
  static Track counter_uuid(int process);
  perfetto::wire::TrackEvent& begin_event(perfetto::wire::Packet& packet, Nanoseconds time,
                                          int type, Track track) const;
  void write(perfetto::wire::Packet packet);
  void close_slices(Track track, Nanoseconds until);
  void instant(TraceTrack track, Nanoseconds time, std::int64_t flow, bool ends_flow);
  /// Number of a name; a new one is told in `packet`.
  std::uint64_t name_id(std::string_view name_json, perfetto::wire::Packet& packet);

  std::string trace_;
  std::map<std::string, std::uint64_t, std::less<>> names_;
  std::set<Track> counters_;                        ///< that have a name
  std::map<Track, std::vector<Nanoseconds>> open_;  ///< ends not written: slices inside may follow
};

}  // namespace tessera
