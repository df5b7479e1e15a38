#include "workloads/memory/segment_temporaries.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// A stage of one block, whose storages have these scopes.
class SegmentTemporariesTest : public testing::Test {
 protected:
  void storages(const std::vector<StorageScope>& scopes) {
    ProgramBlock block;
    for (const StorageScope scope : scopes) block.storages.push_back({.scope = scope});
    program_.blocks = {block};
  }
  static MemoryEvent made(int storage) { return event(MemoryEventKind::allocate, storage); }
  static MemoryEvent freed(int storage) { return event(MemoryEventKind::free, storage); }
  static MemoryEvent event(MemoryEventKind kind, int storage) {
    MemoryEvent event;
    event.kind = kind;
    event.storage = StorageId(storage);
    return event;
  }
  SegmentId run(const std::vector<MemoryEvent>& memory) {
    Segment segment;
    segment.block = 0;
    segment.memory = memory;
    program_.segments.push_back(segment);
    ProgramOp op;
    op.segment = SegmentId(static_cast<std::int32_t>(program_.segments.size()) - 1);
    stage_.ops.push_back(op);
    return op.segment;
  }
  std::vector<std::int32_t> makers(SegmentId segment) {
    const SegmentTemporaries all(program_, stage_);
    const auto found = all.of(segment);
    return {found.begin(), found.end()};
  }

 private:
  Program program_;
  RankProgram stage_;
};

using Makers = std::vector<std::int32_t>;
using enum StorageScope;

TEST_F(SegmentTemporariesTest, AFreeKnowsWhatItEnds) {
  storages({local, local});
  const SegmentId segment = run({made(0), made(1), freed(1), freed(0)});
  EXPECT_EQ(makers(segment), (Makers{0, 1, 1, 0}));
}

TEST_F(SegmentTemporariesTest, OfOneTensorTheOldestIsFreedFirst) {
  storages({local});
  const SegmentId segment = run({made(0), made(0), freed(0), freed(0)});
  EXPECT_EQ(makers(segment), (Makers{0, 1, 0, 1}));
}

TEST_F(SegmentTemporariesTest, WhatAnotherSegmentFreesIsNone) {
  storages({held, local});
  const SegmentId forward = run({made(0), made(1), freed(1)});
  const SegmentId backward = run({freed(0)});
  EXPECT_EQ(makers(forward), (Makers{-1, 1, 1}));
  EXPECT_EQ(makers(backward), (Makers{-1}));
}

// The second segment frees what the first left, not what it made itself.
TEST_F(SegmentTemporariesTest, ATensorThatPassesOneBorderIsNoneAnywhere) {
  storages({held});
  run({made(0)});
  const SegmentId balanced = run({made(0), freed(0)});
  run({freed(0)});
  EXPECT_EQ(makers(balanced), (Makers{-1, -1}));
}

TEST_F(SegmentTemporariesTest, WhatOtherBlocksSeeIsNone) {
  storages({leaves_forward, enters_forward});
  const SegmentId segment = run({made(0), freed(1), event(MemoryEventKind::receive, -1)});
  EXPECT_EQ(makers(segment), (Makers{-1, -1, -1}));
}

}  // namespace
}  // namespace tessera
