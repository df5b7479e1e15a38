#include "sim/engine/folding/symmetry.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace tessera {
namespace {

/// A transfer from one rank to another over the links.
void add_message(SymmetryGraph& graph, std::uint32_t from, std::uint32_t to,
                 const std::vector<std::uint32_t>& links) {
  graph.transfers.push_back(7);
  graph.members.add(from * SymmetryGraph::kRoles);
  graph.members.add(to * SymmetryGraph::kRoles + 1);
  graph.members.end_list();
  for (const std::uint32_t link : links) graph.crossed.add(link);
  graph.crossed.end_list();
}

std::size_t distinct(const std::vector<Color>& colors) {
  return std::set<Color>(colors.begin(), colors.end()).size();
}

TEST(Symmetry, RanksOfARingAreAlike) {
  SymmetryGraph graph{.ranks = std::vector<Color>(5, 1), .links = std::vector<Color>(5, 2)};
  for (std::uint32_t i = 0; i < 5; ++i) add_message(graph, i, (i + 1) % 5, {i});
  refine(graph);
  EXPECT_EQ(distinct(graph.ranks), 1u);
  EXPECT_EQ(distinct(graph.links), 1u);
}

TEST(Symmetry, RanksOfAChainAreToldApartByTheirDistanceToItsEnds) {
  SymmetryGraph graph{.ranks = std::vector<Color>(5, 1), .links = {}};
  for (std::uint32_t i = 0; i + 1 < 5; ++i) add_message(graph, i, i + 1, {});
  refine(graph);
  EXPECT_EQ(distinct(graph.ranks), 5u);  // messages have a direction
}

TEST(Symmetry, OneSlowLinkTellsItsUsersFromTheOthers) {
  // Three pairs; the link of the last one is another.
  SymmetryGraph graph{.ranks = std::vector<Color>(6, 1), .links = {2, 2, 3}};
  for (std::uint32_t pair = 0; pair < 3; ++pair) {
    add_message(graph, 2 * pair, 2 * pair + 1, {pair});
  }
  refine(graph);
  EXPECT_EQ(graph.ranks[0], graph.ranks[2]);
  EXPECT_NE(graph.ranks[0], graph.ranks[4]);
  EXPECT_NE(graph.ranks[0], graph.ranks[1]);
}

TEST(Symmetry, ALinkThatTwoShareIsNotALinkThatThreeShare) {
  SymmetryGraph graph{.ranks = std::vector<Color>(10, 1), .links = {2, 2}};
  for (std::uint32_t i = 0; i < 5; ++i) add_message(graph, 2 * i, 2 * i + 1, {i < 2 ? 0U : 1U});
  refine(graph);
  EXPECT_EQ(graph.ranks[0], graph.ranks[2]);
  EXPECT_NE(graph.ranks[0], graph.ranks[4]);
  EXPECT_NE(graph.links[0], graph.links[1]);
}

}  // namespace
}  // namespace tessera
