#include "sim/remat/baselines/rotor_chain.h"

#include <algorithm>

#include "sim/remat/baselines/articulation.h"

namespace tessera::remat {
namespace {

/// Last operator of each block but the last.
std::vector<OpId> block_ends(const Graph& graph, int most) {
  std::vector<OpId> ends;
  for (const TensorId q : forward_articulation(graph)) ends.push_back(graph.producer(q));
  while (static_cast<int>(ends.size()) >= most) {  // every second cut goes
    std::vector<OpId> fewer;
    for (std::size_t i = 1; i < ends.size(); i += 2) fewer.push_back(ends[i]);
    ends = std::move(fewer);
  }
  return ends;
}

class ChainBuilder {
 public:
  ChainBuilder(const Graph& graph, int most) : graph_(graph), block_of_(graph.ops(), 0) {
    const std::vector<OpId> ends = block_ends(graph, most);
    chain_.resize(ends.size() + 1);
    int block = 0;
    for (OpId op = 0; op < graph.first_backward(); ++op) {
      while (block < static_cast<int>(ends.size()) && op > ends[block]) ++block;
      put(op, block, chain_[block].forward);
    }
    for (OpId op = graph.first_backward(); op < graph.ops(); ++op) {
      for (const TensorId q : graph.inputs(op)) {
        const OpId maker = graph.producer(q);
        if (maker >= graph.first_backward()) continue;
        const bool is_cut = std::ranges::find(ends, maker) != ends.end();
        block = std::min(block, block_of_[maker] + (is_cut ? 1 : 0));
      }
      put(op, block, chain_[block].backward);
    }
  }

  std::vector<ChainBlock> run() && {
    for (std::size_t i = 0; i < chain_.size(); ++i) measure(chain_[i], i + 1 == chain_.size());
    for (TensorId q = 0; q < graph_.tensors(); ++q) hand_down(q);
    return std::move(chain_);
  }

 private:
  void put(OpId op, int block, std::vector<OpId>& list) {
    block_of_[op] = block;
    list.push_back(op);
  }

  bool read_by_backward(TensorId q) const {
    const auto readers = graph_.consumers(q);
    return graph_.kept(q) || (!readers.empty() && readers.back() >= graph_.first_backward());
  }

  void measure(ChainBlock& block, bool last) const {
    for (const OpId op : block.forward) {
      block.forward_time += graph_.time(op);
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
        if (read_by_backward(q)) block.saved += graph_.size(q);
    }
    measure_own(block);
    for (const OpId op : block.backward) block.backward_time += graph_.time(op);
    if (!last && !block.forward.empty()) {
      const TensorId cut = graph_.first_output(block.forward.back());
      block.output = graph_.size(cut);
      if (!read_by_backward(cut)) block.saved += block.output;
    }
    block.forward_peak = peak(block.forward, false);
    block.saving_peak = peak(block.forward, true);
    block.backward_peak = peak(block.backward, false);
  }

  /// `q` is there for the backward of every block from below its own to that of its last reader.
  void hand_down(TensorId q) {
    int lowest = block_of_[graph_.producer(q)];
    for (const OpId reader : graph_.consumers(q))
      if (reader >= graph_.first_backward()) lowest = std::min(lowest, block_of_[reader]);
    for (int block = lowest; block < block_of_[graph_.producer(q)]; ++block)
      chain_[block].gradient += graph_.size(q);
  }

  bool read_by_own_backward(TensorId q) const {
    return std::ranges::any_of(graph_.consumers(q), [&](OpId reader) {
      return reader >= graph_.first_backward() &&
             block_of_[reader] == block_of_[graph_.producer(q)];
    });
  }

  void measure_own(ChainBlock& block) const {
    std::vector<std::uint8_t> wanted(graph_.tensors(), 0);
    std::vector<OpId> needed;
    for (std::size_t i = block.forward.size(); i-- > 0;) {
      const OpId op = block.forward[i];
      bool runs = false;
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q) {
        const bool own = read_by_own_backward(q);
        if (own) block.own += graph_.size(q);
        runs = runs || own || wanted[q];
      }
      if (!runs) continue;
      needed.push_back(op);
      block.own_time += graph_.time(op);
      for (const TensorId q : graph_.inputs(op)) wanted[q] = 1;
    }
    std::ranges::reverse(needed);
    block.own_peak = peak(needed, true);
  }

  /// Of what `ops` make, each tensor freed behind its last reader among them.
  ByteCount peak(const std::vector<OpId>& ops, bool saves) const {
    ByteCount now = 0, highest = 0;
    for (const OpId op : ops) {
      for (TensorId q = graph_.first_output(op); q < graph_.first_output(op + 1); ++q)
        now += graph_.size(q);
      highest = std::max(highest, now + graph_.workspace(op));
      for (const TensorId q : graph_.inputs(op)) {
        const bool made_here = graph_.producer(q) >= ops.front();
        const auto readers = graph_.consumers(q);
        const auto beyond = std::upper_bound(readers.begin(), readers.end(), op);
        const bool read_again = beyond != readers.end() && *beyond <= ops.back();
        if (made_here && !read_again && !(saves && read_by_backward(q))) now -= graph_.size(q);
      }
    }
    return highest;
  }

  const Graph& graph_;
  std::vector<int> block_of_;
  std::vector<ChainBlock> chain_;
};

/// Executions that somebody needs: first ones, and those whose outputs are read before they are
/// made again.
std::vector<OpId> needed_executions(const Graph& graph, const std::vector<OpId>& executions,
                                    const std::vector<std::uint8_t>& is_first) {
  std::vector<std::uint8_t> wanted(graph.tensors(), 0);
  for (const TensorId q : graph.kept_tensors()) wanted[q] = 1;
  std::vector<OpId> needed;
  for (std::size_t i = executions.size(); i-- > 0;) {
    const OpId op = executions[i];
    bool runs = is_first[i] != 0;
    for (TensorId q = graph.first_output(op); q < graph.first_output(op + 1); ++q) {
      runs = runs || wanted[q];
      wanted[q] = 0;
    }
    if (!runs) continue;
    needed.push_back(op);
    for (const TensorId q : graph.inputs(op)) wanted[q] = 1;
  }
  std::ranges::reverse(needed);
  return needed;
}

/// Steps of `executions` with every tensor dropped behind its last reader ahead of the next time
/// that it is made.
Schedule with_drops(const Graph& graph, const std::vector<OpId>& executions) {
  std::vector<std::uint8_t> wanted(graph.tensors(), 0);
  for (const TensorId q : graph.kept_tensors()) wanted[q] = 1;
  Schedule backwards;
  for (std::size_t i = executions.size(); i-- > 0;) {
    const OpId op = executions[i];
    for (TensorId q = graph.first_output(op); q < graph.first_output(op + 1); ++q) {
      if (!wanted[q]) backwards.push_back({Action::drop, q});
      wanted[q] = 0;
    }
    for (const TensorId q : graph.inputs(op)) {
      if (!wanted[q]) backwards.push_back({Action::drop, q});
      wanted[q] = 1;
    }
    backwards.push_back({Action::compute, op});
  }
  std::ranges::reverse(backwards);
  return backwards;
}

}  // namespace

std::vector<ChainBlock> chain_of(const Graph& graph, int most) {
  return ChainBuilder(graph, most).run();
}

Schedule schedule_of_chain(const Graph& graph, const std::vector<ChainBlock>& chain,
                           const std::vector<ChainStep>& steps) {
  std::vector<OpId> executions;
  std::vector<std::uint8_t> is_first, ran(graph.ops(), 0);
  for (const ChainStep& step : steps) {
    const ChainBlock& block = chain[step.block];
    for (const OpId op : step.backward ? block.backward : block.forward) {
      if (ran[op] && !graph.recomputable(op)) continue;
      executions.push_back(op);
      is_first.push_back(ran[op] ? 0 : 1);
      ran[op] = 1;
    }
  }
  return with_drops(graph, needed_executions(graph, executions, is_first));
}

}  // namespace tessera::remat
