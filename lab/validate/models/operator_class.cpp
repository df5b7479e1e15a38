#include "lab/validate/models/operator_class.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <string>

namespace tessera {
namespace {

using Words = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view word, Words words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool ends_with_one_of(std::string_view word, Words ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return word.ends_with(end); });
}

/// Behind the last point: "module:bert.pooler.dense" -> "dense".
std::string_view last_word(std::string_view name) {
  return name.substr(name.find_last_of(".:") + 1);
}

bool is_linear(std::string_view word) {
  return is_one_of(word,
                   {"addmm",  "linear", "query",   "key",        "value",   "dense",
                    "fc1",    "fc2",    "lm_head", "classifier", "decoder", "seq_relationship",
                    "c_attn", "c_fc",   "wi",      "wo",         "q",       "k",
                    "v",      "o"}) ||
         word.ends_with("_proj");
}

bool is_embedding(std::string_view word) {
  return is_one_of(word, {"embedding", "wte", "wpe", "embed_tokens", "embed_positions"}) ||
         word.ends_with("_embeddings");
}

bool is_activation(std::string_view word) {
  return is_one_of(
      word, {"gelu", "relu", "tanh", "silu", "act", "act_fn", "activation", "activation_fn"});
}

bool is_arithmetic(std::string_view word) {
  return is_one_of(word, {"add",  "sub", "mul", "truediv", "div", "neg",     "pow",     "rsqrt",
                          "sqrt", "exp", "log", "max",     "min", "maximum", "minimum", "lt",
                          "le",   "gt",  "ge",  "eq",      "ne",  "abs",     "iadd",    "imul"});
}

bool is_movement(std::string_view word) {
  return is_one_of(word, {"contiguous", "clone", "where", "getitem", "masked_fill", "cat", "copy"});
}

bool is_layer_norm(std::string_view word) {
  return is_one_of(word, {"LayerNorm", "layer_norm"}) || word.starts_with("ln_") ||
         word.ends_with("_norm");
}

OperatorClass class_of_word(std::string_view word) {
  if (word.find("drop") != std::string_view::npos) return OperatorClass::dropout;
  if (is_layer_norm(word)) return OperatorClass::layer_norm;
  if (is_one_of(word, {"matmul", "bmm", "baddbmm"})) return OperatorClass::matmul;
  if (word == "softmax") return OperatorClass::softmax;
  if (is_linear(word)) return OperatorClass::linear;
  if (is_embedding(word)) return OperatorClass::embedding;
  if (is_activation(word)) return OperatorClass::activation;
  if (is_movement(word)) return OperatorClass::movement;
  return is_arithmetic(word) ? OperatorClass::elementwise : OperatorClass::other;
}

/// Pointwise kernels of the families' graphs (workloads/families, workloads/ops).
OperatorClass class_of_pointwise(std::string_view word) {
  if (word.ends_with("dropout")) return OperatorClass::dropout;
  if (is_one_of(word, {"activation", "tanh"})) return OperatorClass::activation;
  const bool moves = ends_with_one_of(word, {"_copy", "merge_heads"}) ||
                     is_one_of(word, {"copy", "clone", "mask", "masked_fill", "cat"});
  if (moves) return OperatorClass::movement;
  return word == "cumsum" ? OperatorClass::other : OperatorClass::elementwise;
}

OperatorClass class_of(const GraphOp& op) {
  switch (op.kernel.kind) {
    case KernelKind::gemm:
      return OperatorClass::linear;
    case KernelKind::batched_gemm:
      return OperatorClass::matmul;
    case KernelKind::softmax:
      return OperatorClass::softmax;
    case KernelKind::layer_norm:
      return OperatorClass::layer_norm;
    case KernelKind::gather:
      return OperatorClass::embedding;
    case KernelKind::elementwise:
    case KernelKind::copy:
      return class_of_pointwise(last_word(op.name));
    case KernelKind::fill:
    case KernelKind::reduction:
    case KernelKind::scatter:
    case KernelKind::multi_tensor:
    case KernelKind::convolution:  // of no operator in the file, as the next two
    case KernelKind::attention:
    case KernelKind::grouped_gemm:
      return OperatorClass::other;
  }
  return OperatorClass::other;
}

std::int64_t product_of(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// addmm(bias, a, b) contracts over the last dimension of its second operand, the others over that
/// of their first.
std::int64_t contraction_of(const TimedOperator& timed) {
  const std::size_t operand = timed.op == "addmm" ? 1 : 0;
  if (timed.inputs.size() <= operand || timed.inputs[operand].empty()) return 0;
  return timed.inputs[operand].back();
}

}  // namespace

std::string_view label_of(OperatorClass operator_class) {
  switch (operator_class) {
    case OperatorClass::linear:
      return "linear";
    case OperatorClass::matmul:
      return "matmul";
    case OperatorClass::softmax:
      return "softmax";
    case OperatorClass::layer_norm:
      return "layer_norm";
    case OperatorClass::elementwise:
      return "elementwise";
    case OperatorClass::activation:
      return "activation";
    case OperatorClass::embedding:
      return "embedding";
    case OperatorClass::dropout:
      return "dropout";
    case OperatorClass::movement:
      return "movement";
    case OperatorClass::other:
      return "other";
  }
  return "";
}

OperatorKey key_of(const TimedOperator& timed) {
  OperatorKey key{.operator_class = class_of_word(last_word(timed.op)),
                  .elements = product_of(timed.output),
                  .contraction = 0};
  const bool product =
      key.operator_class == OperatorClass::linear || key.operator_class == OperatorClass::matmul;
  if (product) key.contraction = contraction_of(timed);
  return key;
}

OperatorKey key_of(const GraphOp& op) {
  const Kernel& kernel = op.kernel;
  const bool product = kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::batched_gemm;
  return {.operator_class = class_of(op),
          .elements = product ? kernel.batch * kernel.m * kernel.n : kernel.rows * kernel.cols,
          .contraction = kernel.k};
}

}  // namespace tessera
