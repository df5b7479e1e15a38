#include "sim/formats/snapshot/memory_snapshot.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/formats/snapshot/pickle.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kBase = 0x7f0000000000;

Bytes of(const SnapshotPeak& peak, SnapshotUse use) {
  return peak.of_uses[static_cast<std::size_t>(use)];
}

/// 1024 bytes held from before; then 512 come and go twice, 2048 stay.
MemorySnapshot sample() {
  MemorySnapshot snapshot;
  snapshot.labels = {"weights", "layer"};
  const auto event = [&](SnapshotAction action, std::int64_t offset, std::int64_t bytes,
                         SnapshotUse use = SnapshotUse::unknown) {
    snapshot.events.push_back({.action = action,
                               .address = kBase + offset,
                               .bytes = Bytes(bytes),
                               .use = use,
                               .label = action == SnapshotAction::take ? 1 : -1});
  };
  event(SnapshotAction::take, 1024, 512, SnapshotUse::activations);
  event(SnapshotAction::give_back, 1024, 512);
  event(SnapshotAction::new_segment, 4096, 4096);
  event(SnapshotAction::take, 4096, 2048, SnapshotUse::gradients);
  event(SnapshotAction::take, 1024, 512, SnapshotUse::activations);
  event(SnapshotAction::give_back, 1024, 512);
  const SnapshotBlock weights{kBase, Bytes(1024), true, SnapshotUse::parameters, 0};
  const SnapshotBlock rest{kBase + 1024, Bytes(3072), false, SnapshotUse::unknown, -1};
  const SnapshotBlock gradients{kBase + 4096, Bytes(2048), true, SnapshotUse::gradients, 1};
  const SnapshotBlock tail{kBase + 6144, Bytes(2048), false, SnapshotUse::unknown, -1};
  snapshot.segments = {{kBase, Bytes(4096), 0, true, {weights, rest}},
                       {kBase + 4096, Bytes(4096), 0, true, {gradients, tail}}};
  return snapshot;
}

TEST(MemorySnapshot, FindsThePeakFromTheEndAndTheEvents) {
  const SnapshotPeak peak = peak_of(sample());
  EXPECT_EQ(peak.allocated, Bytes(1024 + 2048 + 512));
  EXPECT_EQ(peak.reserved, Bytes(8192));
  EXPECT_EQ(of(peak, SnapshotUse::parameters), Bytes(1024));
  EXPECT_EQ(of(peak, SnapshotUse::gradients), Bytes(2048));
  EXPECT_EQ(of(peak, SnapshotUse::activations), Bytes(512));
}

TEST(MemorySnapshot, IsTheSameWrittenAndRead) {
  const auto again = read_memory_snapshot(to_pickle(sample()), "written");
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again.front().events.size(), sample().events.size());
  const SnapshotPeak peak = peak_of(again.front()), was = peak_of(sample());
  EXPECT_EQ(peak.allocated, was.allocated);
  EXPECT_EQ(peak.reserved, was.reserved);
  EXPECT_EQ(peak.of_uses, was.of_uses);
}

/// A trace of allocations that all have 512 bytes, with a stack of one frame each.
class Trace {
 public:
  Trace& take(int slot, const std::string& file, const std::string& function) {
    open("alloc", slot);
    writer_.text("frames");
    writer_.begin_list();
    writer_.begin_dict();
    writer_.text("filename");
    writer_.text(file);
    writer_.text("name");
    writer_.text(function);
    writer_.text("line");
    writer_.integer(3);
    writer_.end_dict();
    writer_.end_list();
    writer_.end_dict();
    return *this;
  }
  Trace& give(int slot) {
    open("free_completed", slot);
    writer_.end_dict();
    return *this;
  }
  MemorySnapshot read() && {
    writer_.end_list();
    writer_.end_list();
    writer_.end_dict();
    return read_memory_snapshot(std::move(writer_).finish(), "trace").front();
  }
  Trace() {
    writer_.begin_dict();
    writer_.text("segments");
    writer_.begin_list();
    writer_.end_list();
    writer_.text("device_traces");
    writer_.begin_list();
    writer_.begin_list();
  }

 private:
  void open(const char* action, int slot) {
    writer_.begin_dict();
    writer_.text("action");
    writer_.text(action);
    writer_.text("addr");
    writer_.integer(kBase + 512 * slot);
    writer_.text("size");
    writer_.integer(512);
  }
  PickleWriter writer_;
};

TEST(MemorySnapshot, TellsUsesByStacks) {
  const std::string torch = "/usr/lib/python3/dist-packages/torch/";
  const MemorySnapshot snapshot = std::move(Trace()
                                                .take(0, "model.py", "forward")
                                                .take(1, torch + "autograd/__init__.py", "backward")
                                                .take(2, torch + "autograd/__init__.py", "backward")
                                                .give(1)
                                                .take(3, torch + "optim/adamw.py", "step")
                                                .take(4, torch + "nn/modules/module.py", "_apply")
                                                .take(5, "model.py", "forward")
                                                .give(2))
                                      .read();
  ASSERT_EQ(snapshot.events.size(), 8U);
  EXPECT_EQ(snapshot.events[0].use, SnapshotUse::activations);
  EXPECT_EQ(snapshot.events[1].use, SnapshotUse::temporary);
  EXPECT_EQ(snapshot.events[2].use, SnapshotUse::gradients);  // lives on into the next forward
  EXPECT_EQ(snapshot.events[4].use, SnapshotUse::optimizer);
  EXPECT_EQ(snapshot.events[5].use, SnapshotUse::parameters);
  EXPECT_EQ(snapshot.labels.front(), "model.py:3 forward");
}

TEST(MemorySnapshot, CountsWhatWasThereBeforeTheRecording) {
  // Given back without having been taken here: 512 bytes at the first moment.
  const MemorySnapshot snapshot = std::move(Trace().give(7).take(8, "model.py", "forward")).read();
  const SnapshotPeak peak = peak_of(snapshot);
  EXPECT_EQ(peak.allocated, Bytes(512));
  EXPECT_EQ(of(peak, SnapshotUse::unknown), Bytes(512));
}

TEST(MemorySnapshot, SaysWhatIsMissing) {
  PickleWriter writer;
  writer.begin_dict();
  writer.text("device_traces");
  writer.begin_list();
  writer.end_list();
  writer.end_dict();
  try {
    read_memory_snapshot(std::move(writer).finish(), "half.pickle");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("half.pickle"));
    EXPECT_THAT(error.what(), HasSubstr("segments"));
  }
}

}  // namespace
}  // namespace tessera
