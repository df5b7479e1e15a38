#include "tests/sim/engine/random_program.h"

#include <array>
#include <random>

#include "tests/sim/engine/program_builder.h"

namespace tessera::test {
namespace {

constexpr std::array kCollectives = {OpKind::all_reduce, OpKind::reduce_scatter,
                                     OpKind::all_gather, OpKind::broadcast,
                                     OpKind::all_to_all, OpKind::ring_shift};

constexpr RankOrder kStagesFirst = {RankDimension::pipeline, RankDimension::data,
                                    RankDimension::expert, RankDimension::context,
                                    RankDimension::tensor};

constexpr std::array<ParallelLayout, 12> kLayouts = {{
    {.tensor = 1, .pipeline = 1, .data = 1},
    {.tensor = 4, .pipeline = 1, .data = 1},
    {.tensor = 1, .pipeline = 1, .data = 4},
    {.tensor = 1, .pipeline = 4, .data = 1},
    {.tensor = 2, .pipeline = 2, .data = 1},
    {.tensor = 2, .pipeline = 2, .data = 2},
    {.tensor = 1, .pipeline = 3, .data = 2},
    {.tensor = 1, .pipeline = 1, .data = 8, .shard = 4},
    {.tensor = 2, .pipeline = 1, .data = 2, .context = 2},
    {.tensor = 1, .pipeline = 2, .data = 4, .expert = 2},
    {.tensor = 2, .pipeline = 2, .data = 1, .context = 2, .expert = 2, .order = kStagesFirst},
    {.tensor = 2, .pipeline = 1, .data = 4, .expert = 4, .expert_tensor = 1},
}};

class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed)
      : random_(seed), layout_(kLayouts[below(kLayouts.size())]), builder_(layout_) {
    for (int stage = 0; stage < layout_.pipeline; ++stage) op_count_.push_back(0);
  }

  TimedProgram build() {
    const auto steps = static_cast<int>(10 + below(30));
    for (int step = 0; step < steps; ++step) add_step(step);
    TimedProgram program = builder_.build();
    if (chance(2)) program.communication_host_time = Seconds(static_cast<double>(below(9)) * 1e-6);
    program.single_hardware_queue = chance(2);
    return program;
  }

 private:
  // std:: distributions differ between libraries; the engine's raw output does not.
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool chance(std::uint64_t one_in) { return below(one_in) == 0; }
  int any_stage() { return static_cast<int>(below(static_cast<std::uint64_t>(layout_.pipeline))); }
  Bytes any_size() { return Bytes(static_cast<std::int64_t>(below(4'000'000))); }
  StreamKind any_stream() { return static_cast<StreamKind>(below(kStreamCount)); }

  Waits any_waits(int stage) {
    Waits waits = kNoWaits;
    const auto count = static_cast<std::uint64_t>(op_count_[static_cast<std::size_t>(stage)]);
    for (std::int32_t& awaited : waits) {
      if (count > 0 && chance(3)) awaited = static_cast<std::int32_t>(below(count));
    }
    return waits;
  }

  void added(int stage) {
    ++op_count_[static_cast<std::size_t>(stage)];
    if (chance(8)) builder_.last(stage).host_sync = true;
  }

  void add_step(int step) {
    switch (below(6)) {
      case 0:
        add_message(step);
        break;
      case 1:
        add_collective(any_stage(), any_group_of_one_stage());
        break;
      case 2:
        add_collective_of_all_stages();
        break;
      default:
        add_kernels(any_stage());
    }
  }

  void add_kernels(int stage) {
    SegmentCosts costs;
    if (chance(2)) costs.host_time = Seconds(static_cast<double>(below(60)) * 1e-6);
    costs.host_sync = chance(10);
    costs.net_memory = any_size();
    costs.peak_above_start = costs.net_memory + any_size();
    const Seconds duration(static_cast<double>(below(100)) * 1.1e-6);
    if (chance(2)) {
      builder_.kernels(stage, {duration, 2.3 * duration}, any_waits(stage), costs);
    } else {
      builder_.kernels(stage, {duration}, any_waits(stage), costs);
    }
    added(stage);
  }

  OpKind any_collective() { return kCollectives[below(kCollectives.size())]; }
  GroupKind any_group_of_one_stage() {
    constexpr std::array kGroups = {GroupKind::tensor,     GroupKind::data,    GroupKind::shard,
                                    GroupKind::replica,    GroupKind::context, GroupKind::expert,
                                    GroupKind::expert_data};
    return kGroups[below(kGroups.size())];
  }

  void add_collective(int stage, GroupKind group) {
    const StreamKind stream = any_stream();
    builder_.collective(any_collective(), stage, group, any_size(), stream, any_waits(stage));
    added(stage);
  }

  void add_collective_of_all_stages() {
    constexpr std::array kGroups = {GroupKind::world, GroupKind::pipeline, GroupKind::embedding};
    const GroupKind group = kGroups[below(kGroups.size())];
    const OpKind kind = any_collective();
    const Bytes bytes = any_size();
    for (int stage = 0; stage < layout_.pipeline; ++stage) {
      const bool between = stage > 0 && stage < layout_.pipeline - 1;
      if (group == GroupKind::embedding && between) continue;
      builder_.collective(kind, stage, group, bytes, any_stream(), any_waits(stage));
      added(stage);
    }
  }

  void add_message(int tag) {
    const int from = any_stage();
    const int to = any_stage();
    if (from == to) return;
    const Bytes bytes = any_size();
    builder_.send(from, to, tag, bytes, any_waits(from));
    added(from);
    builder_.recv(to, from, tag, bytes, any_waits(to));
    added(to);
  }

  std::mt19937_64 random_;
  ParallelLayout layout_;
  ProgramBuilder builder_;
  std::vector<int> op_count_;
};

}  // namespace

TimedProgram random_program(std::uint64_t seed) {
  return RandomProgram(seed).build();
}

}  // namespace tessera::test
