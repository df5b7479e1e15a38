#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/remat/stage_plan.h"

namespace tessera::remat {

/// A set of tensors or operators of a small graph.
template <int Words>
struct BitRow {
  std::array<std::uint64_t, Words> words{};

  bool has(int i) const { return (words[i >> 6] >> (i & 63)) & 1; }
  void add(int i) { words[i >> 6] |= std::uint64_t{1} << (i & 63); }
  void remove(int i) { words[i >> 6] &= ~(std::uint64_t{1} << (i & 63)); }
  void flip(int i) { words[i >> 6] ^= std::uint64_t{1} << (i & 63); }
  bool empty() const {
    for (const std::uint64_t word : words)
      if (word) return false;
    return true;
  }
  int count() const {
    int sum = 0;
    for (const std::uint64_t word : words) sum += std::popcount(word);
    return sum;
  }
  /// The k-th member, k < count().
  int member(int k) const {
    for (int w = 0;; ++w) {
      const int here = std::popcount(words[w]);
      if (k >= here) {
        k -= here;
        continue;
      }
      std::uint64_t word = words[w];
      for (; k > 0; --k) word &= word - 1;
      return 64 * w + std::countr_zero(word);
    }
  }
  bool operator==(const BitRow&) const = default;
};

/// Which tensor is on the device across which stage boundary, for graphs of at most 64 * Words
/// tensors and operators, with the memory and time that follow, updated stage by stage as rows
/// change. Every matrix is a legal plan: what a stage needs and has not is run again, or copied in
/// where its `fetch` bit is set; what nobody uses later is not kept although its bit is set.
template <int Words>
class StageMatrix {
 public:
  using Row = BitRow<Words>;

  struct StageState {
    Row stay;    ///< decision: present across the boundary before this stage, if useful
    Row fetch;   ///< decision: what is absent comes from the host instead of running again
    Row live;    ///< present across the boundary before this stage
    Row used;    ///< read in this stage
    Row again;   ///< operators run again in this stage
    Row copied;  ///< tensors copied in for this stage
    ByteCount live_bytes = 0, peak = 0;
    Nanoseconds time = 0;  ///< of `again`
  };

  /// Everything stays. `budget` without static bytes.
  StageMatrix(const Graph& graph, ByteCount budget);

  const StageState& stage(Stage t) const { return stages_[t]; }
  Stage stages() const { return graph_.ops() + 1; }
  Nanoseconds again_time() const { return again_time_; }
  ByteCount excess() const { return excess_; }  ///< over the budget, summed over stages

  /// Sets decisions of `tensor` in stages [from, to]; effective after `settle`.
  void set_stay(TensorId tensor, Stage from, Stage to, bool stay);
  void set_fetch(TensorId tensor, Stage t, bool fetch);
  /// Recomputes what changed since the last settle.
  void settle();
  /// Takes back everything since the last accept().
  void undo();
  void accept() {
    journal_.clear();
    decoded_.clear();
  }

  /// First stage of the absence that ends at t: after the last stage before t in which `tensor` is
  /// on the device.
  Stage absent_since(TensorId tensor, Stage t) const;
  void write(StagePlan& plan) const;
  void load(const StagePlan& plan);

 private:
  void touch(Stage t, TensorId tensor);
  void decode(Stage t);
  void shift(Stage t, TensorId tensor);
  void write_again(StagePlan& plan) const;
  bool shift_only(Stage t, const Row& live_after_old);
  void store(Stage t, const Row& live, ByteCount bytes, ByteCount peak);

  const Graph& graph_;
  ByteCount budget_;
  std::vector<StageState> stages_;  ///< ops + 2: the last holds the kept tensors
  Nanoseconds again_time_ = 0;
  ByteCount excess_ = 0;
  Stage dirty_low_ = 0, dirty_high_ = -1;
  /// What undo() takes back, the last first: a decision, the shift of a tensor through a stage, or
  /// a stage decoded anew, which is kept as it was.
  enum class Change : std::uint8_t { stay, fetch, shift, decoded };
  struct Changed {
    Change change;
    Stage stage;
    TensorId tensor;
  };
  std::vector<Changed> journal_;
  std::vector<StageState> decoded_;  ///< as they were, in the order of the journal
  static constexpr TensorId kClean = -1, kSeveral = -2;
  std::vector<TensorId> dirty_;  ///< by stage: whose decision changed
};

extern template class StageMatrix<2>;
extern template class StageMatrix<3>;
extern template class StageMatrix<4>;
extern template class StageMatrix<8>;

}  // namespace tessera::remat
