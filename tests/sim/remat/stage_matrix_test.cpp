#include "sim/remat/tessera/stage_matrix.h"

#include <gtest/gtest.h>

#include "tests/sim/remat/sample_graphs.h"

namespace tessera::remat {
namespace {

using Matrix = StageMatrix<2>;

/// A few decisions at random, settled.
void change(Matrix& matrix, const Graph& graph, Random& random) {
  for (int k = 0; k < 4; ++k) {
    const TensorId q = random.below(graph.tensors());
    const Stage from = graph.producer(q) + 1;
    const Stage to = from + random.below(graph.ops() + 1 - from + 1) - 1;
    matrix.set_stay(q, from, to, random.below(2) == 0);
    matrix.set_fetch(q, std::max(from, to), random.below(2) == 0);
  }
  matrix.settle();
}

bool same(const StagePlan& a, const StagePlan& b) {
  const auto equal = [](const Run& x, const Run& y) {
    return x.first == y.first && x.last == y.last && x.origin == y.origin && x.to_host == y.to_host;
  };
  return a.run_count == b.run_count && a.again == b.again && a.again_begin == b.again_begin &&
         std::ranges::equal(a.runs, b.runs, equal);
}

TEST(StageMatrix, UndoBringsBackPlanTimeAndBytesOverTheBudget) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Graph graph = test::random_graph(random, 40);
    if (graph.tensors() > 128) continue;
    Matrix matrix(graph, (base_peak(graph) - graph.static_bytes()) / 2);
    change(matrix, graph, random);
    matrix.accept();
    StagePlan before, after;
    matrix.write(before);
    const Nanoseconds time = matrix.again_time();
    const ByteCount excess = matrix.excess();
    change(matrix, graph, random);
    matrix.undo();
    matrix.write(after);
    EXPECT_TRUE(same(before, after)) << seed;
    EXPECT_EQ(matrix.again_time(), time) << seed;
    EXPECT_EQ(matrix.excess(), excess) << seed;
  }
}

TEST(StageMatrix, APlanThatIsLoadedIsWrittenAgain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const Graph graph = test::random_graph(random, 40);
    if (graph.tensors() > 128) continue;
    Matrix matrix(graph, 0);
    change(matrix, graph, random);
    StagePlan written, again;
    matrix.write(written);
    Matrix loaded(graph, 0);
    loaded.load(written);
    loaded.write(again);
    EXPECT_EQ(written.again, again.again) << seed;
    EXPECT_EQ(matrix.again_time(), loaded.again_time()) << seed;
  }
}

}  // namespace
}  // namespace tessera::remat
