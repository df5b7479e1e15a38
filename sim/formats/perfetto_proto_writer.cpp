#include "sim/formats/perfetto_proto_writer.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/formats/perfetto.pb.h"

namespace tessera {
namespace {

using perfetto::wire::Packet;
using perfetto::wire::TrackDescriptor;
using perfetto::wire::TrackEvent;

constexpr std::uint32_t kSequence = 1;  // all packets are of one sequence
constexpr std::uint32_t kIncrementalStateCleared = 1;
constexpr std::uint32_t kNeedsIncrementalState = 2;

enum EventType : std::uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterType = 4 };

std::string text_of(std::string_view name_json) {
  return nlohmann::json::parse(name_json).get<std::string>();
}

Packet empty_packet() {
  Packet packet;
  packet.set_sequence_id(kSequence);
  return packet;
}

}  // namespace

PerfettoProtoWriter::PerfettoProtoWriter() {
  Packet first = empty_packet();
  first.set_sequence_flags(kIncrementalStateCleared);
  write(std::move(first));
}

PerfettoProtoWriter::Track PerfettoProtoWriter::uuid(TraceTrack track) {
  return static_cast<Track>(track.process) << 8 | static_cast<Track>(track.thread);
}

PerfettoProtoWriter::Track PerfettoProtoWriter::counter_uuid(int process) {
  return uuid({process, 0xff});
}

/// The file is one Trace; parts of a Protobuf message behind each other are the message.
void PerfettoProtoWriter::write(Packet packet) {
  perfetto::wire::Trace part;
  part.mutable_packet()->Add(std::move(packet));
  part.AppendToString(&trace_);
}

TrackEvent& PerfettoProtoWriter::begin_event(Packet& packet, Nanoseconds time, int type,
                                             Track track) const {
  packet.set_timestamp(static_cast<std::uint64_t>(time));
  packet.set_sequence_flags(kNeedsIncrementalState);
  TrackEvent& event = *packet.mutable_track_event();
  event.set_type(static_cast<std::uint32_t>(type));
  event.set_track_uuid(track);
  return event;
}

void PerfettoProtoWriter::name_process(int process, std::string_view name_json) {
  constexpr std::uint32_t kExplicitOrder = 3;
  constexpr std::uint32_t kUnitBytes = 3;
  Packet described = empty_packet();
  TrackDescriptor& descriptor = *described.mutable_track_descriptor();
  descriptor.set_uuid(uuid({process, 0}));
  descriptor.mutable_process()->set_pid(process);
  descriptor.mutable_process()->set_process_name(text_of(name_json));
  descriptor.set_child_ordering(kExplicitOrder);
  write(std::move(described));

  Packet counted = empty_packet();
  TrackDescriptor& memory = *counted.mutable_track_descriptor();
  memory.set_uuid(counter_uuid(process));
  memory.set_name("memory");
  memory.set_parent_uuid(uuid({process, 0}));
  memory.mutable_counter()->set_unit(kUnitBytes);
  write(std::move(counted));
}

void PerfettoProtoWriter::name_thread(TraceTrack track, std::string_view name_json) {
  Packet described = empty_packet();
  TrackDescriptor& descriptor = *described.mutable_track_descriptor();
  descriptor.set_uuid(uuid(track));
  descriptor.set_name(text_of(name_json));
  descriptor.set_parent_uuid(uuid({track.process, 0}));
  descriptor.set_sibling_order_rank(track.thread);
  write(std::move(described));
}

std::uint64_t PerfettoProtoWriter::name_id(std::string_view name_json, Packet& packet) {
  if (const auto found = names_.find(name_json); found != names_.end()) return found->second;
  const std::uint64_t id = names_.size() + 1;
  names_.emplace(name_json, id);
  perfetto::wire::EventName& name = *packet.mutable_interned_data()->add_event_names();
  name.set_id(id);
  name.set_name(text_of(name_json));
  return id;
}

void PerfettoProtoWriter::close_slices(Track track, Nanoseconds until) {
  std::vector<Nanoseconds>& open = open_[track];
  while (!open.empty() && open.back() <= until) {
    Packet ended = empty_packet();
    begin_event(ended, open.back(), kEnd, track);
    write(std::move(ended));
    open.pop_back();
  }
}

void PerfettoProtoWriter::slice(TraceTrack track, std::string_view name_json,
                                std::string_view category, std::string_view /*colour*/,
                                Nanoseconds begin, Nanoseconds end, std::string_view op_args,
                                std::string_view own_args) {
  close_slices(uuid(track), begin);
  Packet begun = empty_packet();
  TrackEvent& event = begin_event(begun, begin, kBegin, uuid(track));
  event.set_name_id(name_id(name_json, begun));
  event.add_categories(std::string(category));
  perfetto::wire::DebugAnnotation& arguments = *event.add_debug_annotations();
  arguments.set_name("args");
  arguments.set_legacy_json_value("{" + std::string(op_args) + std::string(own_args) + "}");
  write(std::move(begun));
  open_[uuid(track)].push_back(end);
}

void PerfettoProtoWriter::instant(TraceTrack track, Nanoseconds time, std::int64_t flow,
                                  bool ends_flow) {
  Packet marked = empty_packet();
  TrackEvent& mark = begin_event(marked, time, kInstant, uuid(track));
  mark.set_name_id(name_id("\"message\"", marked));
  const auto id = static_cast<std::uint64_t>(flow);
  if (ends_flow) {
    mark.add_terminating_flow_ids(id);
  } else {
    mark.add_flow_ids(id);
  }
  write(std::move(marked));
}

void PerfettoProtoWriter::arrow(std::int64_t id, TraceTrack from, Nanoseconds from_time,
                                TraceTrack to, Nanoseconds to_time) {
  instant(from, from_time, id, false);
  instant(to, to_time, id, true);
}

void PerfettoProtoWriter::memory_counter(int process, Nanoseconds time, Bytes used) {
  Packet counted = empty_packet();
  begin_event(counted, time, kCounterType, counter_uuid(process)).set_counter_value(used.value());
  write(std::move(counted));
}

void PerfettoProtoWriter::counter(int process, int number, std::string_view name_json,
                                  std::string_view /*unit*/, Nanoseconds time, std::int64_t value) {
  const Track track = uuid({process, number});
  if (counters_.insert(track).second) {
    Packet described = empty_packet();
    TrackDescriptor& descriptor = *described.mutable_track_descriptor();
    descriptor.set_uuid(track);
    descriptor.set_name(text_of(name_json));
    descriptor.set_parent_uuid(uuid({process, 0}));
    descriptor.set_sibling_order_rank(number);
    descriptor.mutable_counter();
    write(std::move(described));
  }
  Packet counted = empty_packet();
  begin_event(counted, time, kCounterType, track).set_counter_value(value);
  write(std::move(counted));
}

std::string PerfettoProtoWriter::finish() {
  for (const auto& [track, ends] : open_)
    close_slices(track, std::numeric_limits<Nanoseconds>::max());
  return std::exchange(trace_, {});
}

}  // namespace tessera
