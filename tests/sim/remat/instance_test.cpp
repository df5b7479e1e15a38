#include "sim/remat/io/instance.h"

#include <fstream>

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "sim/remat/portable_math.h"
#include "tests/hw/units/scratch.h"

namespace tessera::remat {
namespace {

class InstanceFile : public ::testing::Test {
 protected:
  Instance read(const std::string& text, int number = 0) {
    std::ofstream(file_) << text;
    return read_instance(file_, number);
  }

  std::string complaint(const std::string& text, int number = 0) {
    try {
      read(text, number);
    } catch (const InputError& error) {
      return error.problems().front().text();
    }
    return "no complaint";
  }

  ScratchFolder folder_;
  std::filesystem::path file_ = folder_.path() / "instance.json";
};

const std::string kTwo =
    R"({"instances": [{"dur": [2, 3], "size": [5, 7], "work": [0, 1], "deps": [[], [0]], "keep": [1], "M": 9}]})";

/// x is a constant of 100 bytes; y = f(x) with 8 bytes, v a view of y, z = g(v), then y is mutated.
const std::string kLog = R"({"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"}
{"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","MEMORY":"100","NAME":"x"}
{"ARGS":["x"],"INSTRUCTION":"CALL","NAME":"f","RESULT":["y"],"TIME":"10"}
{"INSTRUCTION":"MEMORY","MEMORY":"8","NAME":"y"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"y"}
{"ARGS":["y"],"INSTRUCTION":"CALL","NAME":"view","RESULT":["v"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","MEMORY":"8","NAME":"v"}
{"ALIAS":"0","INSTRUCTION":"ALIAS","NAME":"v"}
{"ARGS":["v"],"INSTRUCTION":"CALL","NAME":"g","RESULT":["z"],"TIME":"20"}
{"INSTRUCTION":"MEMORY","MEMORY":"4","NAME":"z"}
{"ALIAS":"-1","INSTRUCTION":"ALIAS","NAME":"z"}
{"INSTRUCTION":"RELEASE","NAME":"v"}
{"INSTRUCTION":"RELEASE","NAME":"x"}
{"ARGS":["y"],"INSTRUCTION":"MUTATE","MUTATE":[0],"NAME":"relu_","TIME":"5"}
{"INSTRUCTION":"RELEASE","NAME":"z"}
)";

/// a makes tensors 0 and 1, b reads tensor 1 and makes tensor 2, c reads tensors 0 and 2 and makes
/// none.
const std::string kOperators = R"({"name": "step", "first_backward": 2, "ops": [
  {"name": "a", "time_ns": 3, "inputs": [], "out_bytes": [10, 20], "fixed": true},
  {"name": "b", "time_ns": 4, "inputs": [1], "out_bytes": [30], "workspace": 5},
  {"time_ns": 5, "inputs": [0, 2], "out_bytes": []}]})";

TEST_F(InstanceFile, OperatorsMakeAnyNumberOfTensors) {
  const Instance instance = read(kOperators);
  const Graph& graph = instance.graph;
  EXPECT_EQ(instance.format, "operators");
  EXPECT_EQ(graph.ops(), 3);
  EXPECT_EQ(graph.tensors(), 3);
  EXPECT_EQ(graph.output_count(0), 2);
  EXPECT_EQ(graph.producer(2), 1);
  EXPECT_EQ(graph.size(2), 30);
  EXPECT_EQ(graph.workspace(1), 5);
  EXPECT_FALSE(graph.recomputable(0));
  EXPECT_TRUE(graph.recomputable(1));
  EXPECT_EQ(graph.first_backward(), 2);
  EXPECT_EQ(graph.base_time(), 12);
  EXPECT_EQ(base_peak(graph), 10 + 20 + 30 + 5);
}

TEST_F(InstanceFile, OperatorsReadWhatEarlierOnesMade) {
  const std::string later =
      R"({"ops": [{"time_ns": 1, "inputs": [0], "out_bytes": [1]}, {"time_ns": 1, "inputs": [], "out_bytes": []}]})";
  EXPECT_NE(complaint(later).find("ops[0].inputs"), std::string::npos) << complaint(later);
  EXPECT_NE(complaint(later).find("names tensor 0"), std::string::npos) << complaint(later);
  EXPECT_NE(complaint(R"({"first_backward": 2, "ops": []})").find("first_backward"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"ops": [{"time_ns": -1, "inputs": [], "out_bytes": []}]})").find("-1"),
            std::string::npos);
}

TEST_F(InstanceFile, GoldenGraphs) {
  const Instance instance = read(kTwo);
  EXPECT_EQ(instance.graph.ops(), 2);
  EXPECT_EQ(instance.graph.base_time(), 5);
  EXPECT_EQ(instance.memory, 9);
  EXPECT_EQ(lower_bound(instance.graph).bytes, 13);  // 5 + 7 + workspace 1
}

TEST_F(InstanceFile, LogsShareViewsAndCopyOnMutation) {
  const Instance instance = read(kLog);
  // f with the time of its view, g, relu_: y, z, and a new version of y that is never released.
  EXPECT_EQ(instance.graph.ops(), 3);
  EXPECT_EQ(instance.graph.time(0), 11);
  EXPECT_EQ(instance.graph.base_time(), 36);
  EXPECT_EQ(instance.graph.static_bytes(), 100);
  EXPECT_EQ(instance.graph.kept_tensors(), std::vector<TensorId>{2});
  // By reference counts: 100 + 8 + 4 with z; the constant goes before the mutation (8 + 8 + 4).
  EXPECT_EQ(instance.release_peak, 112);
}

TEST_F(InstanceFile, ComplaintsNameLineFieldAndValue) {
  EXPECT_NE(complaint("{\n\"a\": }").find(":2: is no JSON"), std::string::npos);
  EXPECT_NE(complaint("{}").find("no graph"), std::string::npos);
  EXPECT_NE(complaint(kTwo, 1).find("no instance 1"), std::string::npos);
  std::string text = kTwo;
  text.replace(text.find("[5, 7]"), 6, "[5, -7]");
  EXPECT_NE(complaint(text).find("instances[0].size: holds -7"), std::string::npos);
  text = kTwo;
  text.replace(text.find("[[], [0]]"), 9, "[[1], [0]]");
  EXPECT_NE(complaint(text).find("program order"), std::string::npos);
  text = kLog;
  text.replace(text.find("\"20\""), 4, "\"2x\"");
  EXPECT_NE(complaint(text).find(":10: TIME is '2x'"), std::string::npos);
  text = kLog;
  text.replace(text.find("[\"v\"],\"INSTR"), 5, "[\"w\"]");
  EXPECT_NE(complaint(text).find("uses 'w'"), std::string::npos);
}

/// Whatever a file holds, reading gives a graph or an InputError.
TEST_F(InstanceFile, DamagedFilesAreReadOrRefused) {
  int refused = 0;
  for (int k = 0; k < 600; ++k) {
    Random random(static_cast<std::uint64_t>(k));
    std::string text = k % 2 == 0 ? kTwo : kLog;
    for (int change = 1 + random.below(3); change > 0; --change) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<int>(text.size())));
      if (random.below(2) == 0)
        text.erase(at, 1 + random.below(4));
      else
        text[at] = static_cast<char>(32 + random.below(95));
      if (text.empty()) text = " ";
    }
    refused += complaint(text) != "no complaint" ? 1 : 0;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace tessera::remat
