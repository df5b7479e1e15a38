#include "tests/sim/engine/forked_simulation.h"

#include <cstring>

#include "sim/engine/engine.h"
#include "sim/process/forked_call.h"

namespace tessera::test {
namespace {

template <class Value>
void write(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void write_text(std::string& bytes, const std::string& text) {
  write(bytes, text.size());
  bytes += text;
}

/// Reads back what write() wrote, in the same order.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : next_(bytes.data()) {}

  template <class Value>
  Value read() {
    Value value;
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }

  std::string read_text() {
    const auto size = read<std::size_t>();
    const std::string text(next_, size);
    next_ += size;
    return text;
  }

 private:
  const char* next_;
};

}  // namespace

std::string packed(const Timeline& timeline) {
  std::string bytes;
  write(bytes, timeline.step_time);
  write(bytes, timeline.ops.size());
  for (const OpRecord& op : timeline.ops) {
    write(bytes, op.op);
    for (const Seconds time : {op.start, op.end, op.transfer_start}) write(bytes, time);
  }
  write(bytes, timeline.memory.size());
  for (const MemorySample& sample : timeline.memory) {
    write(bytes, sample.rank);
    write(bytes, sample.time);
    write(bytes, sample.used);
  }
  write(bytes, timeline.peak_memory.size());
  for (const Bytes peak : timeline.peak_memory) write(bytes, peak);
  write(bytes, timeline.pressure_copies.size());
  for (const PressureCopy& copy : timeline.pressure_copies) {
    write(bytes, copy.rank);
    write(bytes, copy.out);
    write(bytes, copy.bytes);
    for (const Seconds time : {copy.start, copy.end}) write(bytes, time);
  }
  write(bytes, timeline.pressure_reruns.size());
  for (const PressureRerun& rerun : timeline.pressure_reruns) {
    write(bytes, rerun.rank);
    write(bytes, rerun.op);
    write(bytes, rerun.bytes);
    for (const Seconds time : {rerun.start, rerun.end}) write(bytes, time);
  }
  write(bytes, timeline.memory_stalls.size());
  for (const MemoryStall& stall : timeline.memory_stalls) {
    write(bytes, stall.rank);
    write(bytes, stall.op);
    for (const Seconds time : {stall.start, stall.end}) write(bytes, time);
  }
  write(bytes, timeline.folding.representative.size());
  for (const int rank : timeline.folding.representative) write(bytes, rank);
  write(bytes, timeline.folding.refused.size());
  for (const FoldRefusal& refusal : timeline.folding.refused) {
    write_text(bytes, refusal.fold);
    write_text(bytes, refusal.reason);
  }
  return bytes;
}

Timeline unpacked(const std::string& bytes) {
  Reader reader(bytes);
  Timeline timeline;
  timeline.step_time = reader.read<Seconds>();
  timeline.ops.resize(reader.read<std::size_t>());
  for (OpRecord& op : timeline.ops) {
    op.op = reader.read<std::int32_t>();
    for (Seconds* time : {&op.start, &op.end, &op.transfer_start}) *time = reader.read<Seconds>();
  }
  timeline.memory.resize(reader.read<std::size_t>());
  for (MemorySample& sample : timeline.memory) {
    sample.rank = reader.read<std::int32_t>();
    sample.time = reader.read<Seconds>();
    sample.used = reader.read<Bytes>();
  }
  timeline.peak_memory.resize(reader.read<std::size_t>());
  for (Bytes& peak : timeline.peak_memory) peak = reader.read<Bytes>();
  timeline.pressure_copies.resize(reader.read<std::size_t>());
  for (PressureCopy& copy : timeline.pressure_copies) {
    copy.rank = reader.read<std::int32_t>();
    copy.out = reader.read<bool>();
    copy.bytes = reader.read<Bytes>();
    for (Seconds* time : {&copy.start, &copy.end}) *time = reader.read<Seconds>();
  }
  timeline.pressure_reruns.resize(reader.read<std::size_t>());
  for (PressureRerun& rerun : timeline.pressure_reruns) {
    rerun.rank = reader.read<std::int32_t>();
    rerun.op = reader.read<std::int32_t>();
    rerun.bytes = reader.read<Bytes>();
    for (Seconds* time : {&rerun.start, &rerun.end}) *time = reader.read<Seconds>();
  }
  timeline.memory_stalls.resize(reader.read<std::size_t>());
  for (MemoryStall& stall : timeline.memory_stalls) {
    stall.rank = reader.read<std::int32_t>();
    stall.op = reader.read<std::int32_t>();
    for (Seconds* time : {&stall.start, &stall.end}) *time = reader.read<Seconds>();
  }
  timeline.folding.representative.resize(reader.read<std::size_t>());
  for (int& rank : timeline.folding.representative) rank = reader.read<int>();
  timeline.folding.refused.resize(reader.read<std::size_t>());
  for (FoldRefusal& refusal : timeline.folding.refused) {
    refusal.fold = reader.read_text();
    refusal.reason = reader.read_text();
  }
  return timeline;
}

Timeline simulate_forked(const TimedProgram& program, const Simulator& simulator) {
  return unpacked(run_forked([&] { return packed(simulator(program)); }));
}

Timeline simulate_forked(const TimedProgram& program) {
  return simulate_forked(program, simulate);
}

}  // namespace tessera::test
