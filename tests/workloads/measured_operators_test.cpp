// The operators that were traced and timed for NeuSight (one layer, embedding and head of each
// model) against the kernels that the graphs launch.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/hw/units/measurements.h"
#include "tests/workloads/models.h"
#include "workloads/model_graph.h"

namespace tessera {
namespace {

using Shape = std::vector<std::int64_t>;

/// One timed operator of the forward pass.
struct TracedOp {
  std::string op;
  std::vector<Shape> inputs;
  Shape output;
};

/// A traced run: model, mode, sequence length, batch.
using TracedRun = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;

/// "(2, 3)" or "(2,)".
Shape python_tuple(std::string text) {
  text = "[" + text.substr(1, text.size() - 2) + "]";
  const std::size_t comma = text.find(",]");
  if (comma != std::string::npos) text.erase(comma, 1);
  return nlohmann::json::parse(text).get<Shape>();
}

std::int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::filesystem::path per_op_table() {
  return measurements_folder() / "models" / "fp32_per_op.csv";
}

std::map<TracedRun, std::vector<TracedOp>> traced_runs(const std::filesystem::path& path) {
  std::map<TracedRun, std::vector<TracedOp>> runs;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // gpu,model,mode,seq_len,batch,node,op,input_shapes,output_shape,...
  while (std::getline(file, line)) {
    const auto f = csv_fields(line);
    if (f[0] != "V100-PCIe-32GB") continue;  // the other GPUs ran the same operators
    runs[{f[1], f[2], std::stoll(f[3]), std::stoll(f[4])}].push_back(
        {f[6], nlohmann::json::parse(f[7]).get<std::vector<Shape>>(), python_tuple(f[8])});
  }
  return runs;
}

ModelSpec traced_model(const std::string& name) {
  if (name == "bert_large") return test::bert_large();
  if (name == "opt_13") return test::opt_1_3b();
  ModelSpec model = test::gpt2_large();
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> kGpt3{
      {"gpt3_xl", {3072, 24}}, {"gpt3_27", {2560, 32}}};  // hidden size and heads
  if (kGpt3.count(name) == 0) return model;
  std::tie(model.hidden, model.heads) = kGpt3.at(name);
  model.kv_heads = model.heads;
  model.head_dim = model.hidden / model.heads;
  model.ffn = 4 * model.hidden;
  model.max_positions = 2048;
  return model;
}

/// batch, m, n, k; products of matrices of tokens have batch 1.
using Product = std::array<std::int64_t, 4>;

/// The product that a traced operator computes, if it is one.
std::optional<Product> product_of(const TracedOp& traced) {
  const std::int64_t n = traced.output.back();
  if (traced.op == "matmul" || traced.op == "bmm") {
    const Shape& a = traced.inputs[0];
    const std::int64_t k = a.back();
    const std::int64_t m = a[a.size() - 2];
    return Product{elements(a) / (m * k), m, n, k};
  }
  if (traced.op == "addmm") {
    return Product{1, traced.inputs[1][0], n, traced.inputs[1][1]};
  }
  const std::array<const char*, 11> linears{"query",   "key",          "value",     "dense",
                                            "decoder", "proj",         "fc1",       "fc2",
                                            "lm_head", "relationship", "classifier"};
  const std::string module = traced.op.substr(traced.op.rfind('.') + 1);
  const bool is_linear = std::any_of(linears.begin(), linears.end(), [&](const char* suffix) {
    return module.ends_with(suffix) || traced.op.ends_with(suffix);
  });
  if (!traced.op.starts_with("module:") || !is_linear) return std::nullopt;
  const std::int64_t k = traced.inputs[0].back();
  return Product{1, elements(traced.inputs[0]) / k, n, k};
}

std::vector<Product> launched_products(const ModelGraph& graph) {
  std::vector<Product> products;
  for (const Block& block : graph.blocks) {
    for (const GraphOp& op : block.forward) {
      const Kernel& k = op.kernel;
      if (k.k > 0) products.push_back({k.batch, k.m, k.n, k.k});
    }
  }
  return products;
}

class MeasuredOperators : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(per_op_table())) {
      GTEST_SKIP() << per_op_table() << " is missing; set TESSERA_MEASUREMENTS";
    }
    runs_ = traced_runs(per_op_table());
  }
  static ModelGraph graph_of(const TracedRun& run) {
    const auto& [name, mode, sequence, batch] = run;
    const StepMode step_mode =
        mode == "training" ? StepMode::forward_backward : StepMode::inference;
    return build_model_graph(traced_model(name),
                             test::single_gpu(test::hf_eager(), step_mode, batch, sequence));
  }
  std::map<TracedRun, std::vector<TracedOp>> runs_;
};

TEST_F(MeasuredOperators, TheSameProductsRunInTheGraph) {
  ASSERT_GE(runs_.size(), 9u);
  for (const auto& [run, traced] : runs_) {
    std::vector<Product> expected;
    for (const TracedOp& op : traced) {
      if (const auto product = product_of(op)) expected.push_back(*product);
    }
    std::vector<Product> launched = launched_products(graph_of(run));
    std::sort(expected.begin(), expected.end());
    std::sort(launched.begin(), launched.end());
    EXPECT_EQ(launched, expected) << std::get<0>(run) << ' ' << std::get<1>(run);
  }
}

TEST_F(MeasuredOperators, EveryLargePointwiseOperatorHasAKernelOfItsSize) {
  constexpr std::int64_t kLarge = 1 << 20;
  const std::array<const char*, 11> pointwise{"add",  "mul",  "truediv", "where", "softmax", "pow",
                                              "tanh", "gelu", "max",     "sub",   "lt"};
  for (const auto& [run, traced] : runs_) {
    std::map<std::int64_t, int> launched;
    for (const Block& block : graph_of(run).blocks) {
      for (const GraphOp& op : block.forward) {
        if (op.kernel.k == 0) ++launched[op.kernel.rows * op.kernel.cols];
      }
    }
    std::map<std::int64_t, int> expected;
    for (const TracedOp& op : traced) {
      const bool counts = std::find(pointwise.begin(), pointwise.end(), op.op) != pointwise.end();
      if (counts && elements(op.output) >= kLarge) ++expected[elements(op.output)];
    }
    for (const auto& [size, count] : expected) {
      EXPECT_GE(launched[size], count) << std::get<0>(run) << " elements " << size;
    }
  }
}

}  // namespace
}  // namespace tessera
