#include "tests/sim/engine/forked_simulation.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "sim/engine/engine.h"
#include "sim/process/forked_call.h"

namespace tessera::test {
namespace {

/// Appends what it is given.
class Writer {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  template <class List>
  void size_of(const List& list) {
    put(list.size());
  }
  std::string bytes() && { return std::move(bytes_); }

 private:
  template <class Value>
  void put(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }

  std::string bytes_;
};

/// Reads back what a Writer was given, in the same order.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : next_(bytes.data()) {}

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class List>
  void size_of(List& list) {
    std::size_t size = 0;
    get(size);
    list.resize(size);
  }

 private:
  template <class Value>
  void get(Value& value) {
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
  }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    text.assign(next_, size);
    next_ += size;
  }

  const char* next_;
};

/// Every part of a timeline, in the order of its bytes: `values` writes them or reads them.
template <class Archive, class AnyTimeline>
void pass_through(Archive& values, AnyTimeline& timeline) {
  const auto each = [&](auto& list, const auto& parts_of) {
    values.size_of(list);
    for (auto& item : list) parts_of(item);
  };
  values(timeline.step_time);
  each(timeline.ops, [&](auto& op) { values(op.op, op.start, op.end, op.transfer_start); });
  each(timeline.memory, [&](auto& sample) { values(sample.rank, sample.time, sample.used); });
  each(timeline.peak_memory, [&](auto& peak) { values(peak); });
  each(timeline.pressure_copies,
       [&](auto& copy) { values(copy.rank, copy.out, copy.bytes, copy.start, copy.end); });
  each(timeline.pressure_reruns,
       [&](auto& rerun) { values(rerun.rank, rerun.op, rerun.bytes, rerun.start, rerun.end); });
  each(timeline.memory_stalls,
       [&](auto& stall) { values(stall.rank, stall.op, stall.start, stall.end); });
  each(timeline.folding.representative, [&](auto& rank) { values(rank); });
  each(timeline.folding.refused, [&](auto& refusal) { values(refusal.fold, refusal.reason); });
}

}  // namespace

std::string packed(const Timeline& timeline) {
  Writer writer;
  pass_through(writer, timeline);
  return std::move(writer).bytes();
}

Timeline unpacked(const std::string& bytes) {
  Reader reader(bytes);
  Timeline timeline;
  pass_through(reader, timeline);
  return timeline;
}

Timeline simulate_forked(const TimedProgram& program, const Simulator& simulator) {
  return unpacked(run_forked([&] { return packed(simulator(program)); }));
}

Timeline simulate_forked(const TimedProgram& program) {
  return simulate_forked(program, simulate);
}

}  // namespace tessera::test
