#include "sim/formats/perfetto_proto_writer.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace tessera {
namespace {

constexpr std::uint64_t kSequence = 1;  // all packets are of one sequence
constexpr std::uint64_t kIncrementalStateCleared = 1;
constexpr std::uint64_t kNeedsIncrementalState = 2;

namespace packet_field {
constexpr int kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
              kSequenceFlags = 13, kTrackDescriptor = 60;
}
namespace descriptor_field {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8,
              kChildOrdering = 11, kSiblingRank = 12;
}
namespace event_field {
constexpr int kDebugAnnotations = 4, kType = 9, kNameId = 10, kTrack = 11, kCategories = 22,
              kCounterValue = 30, kFlowIds = 47, kTerminatingFlowIds = 48;
}
enum EventType : std::uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterType = 4 };

std::string text_of(std::string_view name_json) {
  return nlohmann::json::parse(name_json).get<std::string>();
}

WireMessage track_event(EventType type, std::uint64_t track) {
  WireMessage event;
  event.varint(event_field::kType, type);
  event.varint(event_field::kTrack, track);
  return event;
}

}  // namespace

PerfettoProtoWriter::PerfettoProtoWriter() {
  WireMessage first;
  first.varint(packet_field::kSequenceId, kSequence);
  first.varint(packet_field::kSequenceFlags, kIncrementalStateCleared);
  packet(std::move(first));
}

PerfettoProtoWriter::Track PerfettoProtoWriter::uuid(TraceTrack track) {
  return static_cast<Track>(track.process) << 8 | static_cast<Track>(track.thread);
}

PerfettoProtoWriter::Track PerfettoProtoWriter::counter_uuid(int process) {
  return uuid({process, 0xff});
}

void PerfettoProtoWriter::packet(WireMessage packet) {
  WireMessage trace;
  trace.message(1, packet);
  trace_ += trace.bytes();
}

void PerfettoProtoWriter::describe(WireMessage descriptor) {
  WireMessage described;
  described.varint(packet_field::kSequenceId, kSequence);
  described.message(packet_field::kTrackDescriptor, descriptor);
  packet(std::move(described));
}

void PerfettoProtoWriter::event(Nanoseconds time, WireMessage event, const WireMessage* interned) {
  WireMessage timed;
  timed.varint(packet_field::kTimestamp, static_cast<std::uint64_t>(time));
  timed.varint(packet_field::kSequenceId, kSequence);
  timed.message(packet_field::kTrackEvent, event);
  if (interned && !interned->bytes().empty()) timed.message(packet_field::kInternedData, *interned);
  timed.varint(packet_field::kSequenceFlags, kNeedsIncrementalState);
  packet(std::move(timed));
}

void PerfettoProtoWriter::name_process(int process, std::string_view name_json) {
  constexpr std::uint64_t kExplicitOrder = 3;
  WireMessage inner;
  inner.varint(1, static_cast<std::uint64_t>(process));  // pid
  inner.text(6, text_of(name_json));                     // process_name
  WireMessage descriptor;
  descriptor.varint(descriptor_field::kUuid, uuid({process, 0}));
  descriptor.message(descriptor_field::kProcess, inner);
  descriptor.varint(descriptor_field::kChildOrdering, kExplicitOrder);
  describe(std::move(descriptor));

  constexpr std::uint64_t kUnitBytes = 3;
  WireMessage counter;
  counter.varint(3, kUnitBytes);
  WireMessage memory;
  memory.varint(descriptor_field::kUuid, counter_uuid(process));
  memory.text(descriptor_field::kName, "memory");
  memory.varint(descriptor_field::kParent, uuid({process, 0}));
  memory.message(descriptor_field::kCounter, counter);
  describe(std::move(memory));
}

void PerfettoProtoWriter::name_thread(TraceTrack track, std::string_view name_json) {
  WireMessage descriptor;
  descriptor.varint(descriptor_field::kUuid, uuid(track));
  descriptor.text(descriptor_field::kName, text_of(name_json));
  descriptor.varint(descriptor_field::kParent, uuid({track.process, 0}));
  descriptor.varint(descriptor_field::kSiblingRank, static_cast<std::uint64_t>(track.thread));
  describe(std::move(descriptor));
}

std::uint64_t PerfettoProtoWriter::name_id(std::string_view name_json, WireMessage& interned) {
  if (const auto found = names_.find(name_json); found != names_.end()) return found->second;
  const std::uint64_t id = names_.size() + 1;
  names_.emplace(name_json, id);
  WireMessage name;
  name.varint(1, id);
  name.text(2, text_of(name_json));
  interned.message(2, name);  // event_names
  return id;
}

void PerfettoProtoWriter::close_slices(Track track, Nanoseconds until) {
  std::vector<Nanoseconds>& open = open_[track];
  while (!open.empty() && open.back() <= until) {
    event(open.back(), track_event(kEnd, track));
    open.pop_back();
  }
}

void PerfettoProtoWriter::slice(TraceTrack track, std::string_view name_json,
                                std::string_view category, Nanoseconds begin, Nanoseconds end,
                                std::string_view op_args, std::string_view own_args) {
  close_slices(uuid(track), begin);
  WireMessage interned;
  WireMessage begun = track_event(kBegin, uuid(track));
  begun.varint(event_field::kNameId, name_id(name_json, interned));
  begun.text(event_field::kCategories, category);
  WireMessage arguments;
  arguments.text(10, "args");                                                   // name
  arguments.text(9, "{" + std::string(op_args) + std::string(own_args) + "}");  // legacy_json_value
  begun.message(event_field::kDebugAnnotations, arguments);
  event(begin, std::move(begun), &interned);
  open_[uuid(track)].push_back(end);
}

void PerfettoProtoWriter::instant(TraceTrack track, Nanoseconds time, int flow_field,
                                  std::int64_t id) {
  WireMessage interned;
  WireMessage mark = track_event(kInstant, uuid(track));
  mark.varint(event_field::kNameId, name_id("\"message\"", interned));
  mark.fixed64(flow_field, static_cast<std::uint64_t>(id));
  event(time, std::move(mark), &interned);
}

void PerfettoProtoWriter::arrow(std::int64_t id, TraceTrack from, Nanoseconds from_time,
                                TraceTrack to, Nanoseconds to_time) {
  instant(from, from_time, event_field::kFlowIds, id);
  instant(to, to_time, event_field::kTerminatingFlowIds, id);
}

void PerfettoProtoWriter::memory_counter(int process, Nanoseconds time, Bytes used) {
  WireMessage counted = track_event(kCounterType, counter_uuid(process));
  counted.varint(event_field::kCounterValue, static_cast<std::uint64_t>(used.value()));
  event(time, std::move(counted));
}

std::string PerfettoProtoWriter::finish() {
  for (const auto& [track, ends] : open_)
    close_slices(track, std::numeric_limits<Nanoseconds>::max());
  return std::exchange(trace_, {});
}

}  // namespace tessera
