#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

/// Names a class of ranks, transfers or links; members of one class have equal colors.
using Color = std::uint64_t;

/// A hash of both; spreads every bit (finalizer of splitmix64, Steele et al. 2014).
constexpr Color mixed_color(Color a, Color b) {
  Color x = a * 0x9e3779b97f4a7c15ULL + b + 0x632be59bd9b4e019ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// Lists of numbers behind each other.
class NumberLists {
 public:
  void add(std::uint32_t number) { numbers_.push_back(number); }
  void end_list() { ends_.push_back(numbers_.size()); }
  std::size_t size() const { return ends_.size(); }
  std::span<const std::uint32_t> operator[](std::size_t list) const {
    const std::size_t begin = list == 0 ? 0 : ends_[list - 1];
    return std::span(numbers_).subspan(begin, ends_[list] - begin);
  }

 private:
  std::vector<std::uint32_t> numbers_;
  std::vector<std::size_t> ends_;
};

/// What takes part in a simulation: ranks, the transfers between them, the links that these cross.
/// Colors are at first what tells members apart whatever they are connected to.
struct SymmetryGraph {
  static constexpr std::uint32_t kRoles = 4;  ///< of a member in a transfer: sender, receiver, ...

  std::vector<Color> ranks;
  std::vector<Color> transfers;
  std::vector<Color> links;
  NumberLists members;  ///< by transfer: rank * kRoles + role
  NumberLists crossed;  ///< by transfer: links, each as often as its bytes cross it
};

/// Splits classes until members of one class are connected in the same way to members of every
/// other class: the coarsest equitable partition below the first colors (color refinement). Ranks
/// of one class then run the same ops at the same times: by induction over the events, because what
/// a rank waits for and what rate a flow gets (max-min fair shares depend only on how many flows of
/// which class cross links of which class) are the same for all members of a class.
void refine(SymmetryGraph& graph);

}  // namespace tessera
