#include "sim/engine/folding/symmetry.h"

namespace tessera {
namespace {

/// How many different colors there are; an open hash table, as there are mostly few.
class DistinctColors {
 public:
  std::size_t count(std::span<const Color> colors) {
    slots_.assign(1024, 0);
    count_ = 0;
    for (const Color color : colors) add(color);
    return count_;
  }

 private:
  void add(Color color) {
    if (color == 0) color = 1;  // 0 marks an empty slot
    std::size_t at = color & (slots_.size() - 1);
    while (slots_[at] != 0 && slots_[at] != color) at = (at + 1) & (slots_.size() - 1);
    if (slots_[at] == color) return;
    slots_[at] = color;
    if (++count_ * 2 > slots_.size()) grow();
  }

  void grow() {
    const std::vector<Color> old = std::move(slots_);
    slots_.assign(old.size() * 4, 0);
    count_ = 0;
    for (const Color color : old) {
      if (color != 0) add(color);
    }
  }

  std::vector<Color> slots_;
  std::size_t count_ = 0;
};

/// Colors of transfers by those of their members and links.
void recolor_transfers(SymmetryGraph& graph) {
  for (std::size_t i = 0; i < graph.transfers.size(); ++i) {
    Color sum = 0;  // sums do not depend on the order
    for (const std::uint32_t member : graph.members[i]) {
      sum +=
          mixed_color(graph.ranks[member / SymmetryGraph::kRoles], member % SymmetryGraph::kRoles);
    }
    Color links = 0;
    for (const std::uint32_t link : graph.crossed[i]) links += mixed_color(graph.links[link], 0);
    graph.transfers[i] = mixed_color(mixed_color(graph.transfers[i], sum), links);
  }
}

/// Colors of ranks and links by those of their transfers.
void recolor_ends(SymmetryGraph& graph, std::vector<Color>& of_ranks,
                  std::vector<Color>& of_links) {
  of_ranks.assign(graph.ranks.size(), 0);
  of_links.assign(graph.links.size(), 0);
  for (std::size_t i = 0; i < graph.transfers.size(); ++i) {
    const Color color = graph.transfers[i];
    for (const std::uint32_t member : graph.members[i]) {
      of_ranks[member / SymmetryGraph::kRoles] +=
          mixed_color(color, member % SymmetryGraph::kRoles);
    }
    for (const std::uint32_t link : graph.crossed[i]) of_links[link] += mixed_color(color, 0);
  }
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    graph.ranks[i] = mixed_color(graph.ranks[i], of_ranks[i]);
  }
  for (std::size_t i = 0; i < of_links.size(); ++i) {
    graph.links[i] = mixed_color(graph.links[i], of_links[i]);
  }
}

}  // namespace

// A color contains the one before it, so classes only ever split: when their number stays, they
// do.
void refine(SymmetryGraph& graph) {
  DistinctColors distinct;
  std::vector<Color> of_ranks;
  std::vector<Color> of_links;
  std::size_t classes = 0;
  while (true) {
    recolor_transfers(graph);
    recolor_ends(graph, of_ranks, of_links);
    const std::size_t now =
        distinct.count(graph.ranks) + distinct.count(graph.transfers) + distinct.count(graph.links);
    if (now == classes) return;
    classes = now;
  }
}

}  // namespace tessera
