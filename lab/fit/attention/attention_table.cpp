#include "lab/fit/attention/attention_table.h"

#include <optional>
#include <string_view>

#include "lab/fit/tensor/measured_table.h"

namespace tessera {
namespace {

enum Column : std::size_t {
  kGpu,
  kDirection,
  kCausal,
  kBatch,
  kHeads,
  kKvHeads,
  kHeadDim,
  kSeqQ,
  kSeqKv,
  kLatency,
  kStack,
  kSource,
  kDtype,
  kWindow,
  kHeadDimV,
  kCacheDtype
};

std::optional<AttentionDirection> direction_of(std::string_view name) {
  if (name == "forward") return AttentionDirection::forward;
  if (name == "backward") return AttentionDirection::backward;
  if (name == "forward+backward") return AttentionDirection::forward_backward;
  return std::nullopt;
}

std::optional<AttentionImplementation> implementation_of(std::string_view stack) {
  using enum AttentionImplementation;
  if (stack.starts_with("trtllm/")) return trtllm;
  if (stack == "cuDNN") return cudnn;
  if (stack == "FlashAttention-3" || stack.ends_with("_fa3")) return flash3;
  if (stack == "FlashAttention-2" || stack == "sglang/flash_attention" ||
      stack == "vllm/vllm_flash_attn")
    return flash2;
  return std::nullopt;
}

/// Kernels of other designs (FlashAttention-1, FA4 at head_dim 512) and unfused attention are read
/// but no model is made of them.
bool known_without_model(std::string_view stack) {
  return stack == "PyTorch standard" || stack == "FlashAttention-1" || stack.ends_with("_fa4");
}

/// The columns that say the shape, in the order of the file: "batch,heads,kv_heads,...".
std::string shape_key(const MeasuredTable& table) {
  std::string key(table.text(kBatch));
  for (const Column column : {kHeads, kKvHeads, kHeadDim, kSeqQ, kSeqKv})
    key += "," + std::string(table.text(column));
  return key;
}

bool read_extents(MeasuredTable& table, AttentionCall& call) {
  bool complete = true;
  const auto read = [&](Column column, std::int64_t& value) {
    const auto extent = table.extent(column);
    complete &= extent.has_value();
    value = extent.value_or(1);
  };
  read(kBatch, call.batch);
  read(kHeads, call.heads);
  read(kKvHeads, call.kv_heads);
  read(kHeadDim, call.head_dim);
  read(kSeqQ, call.seq_q);
  read(kSeqKv, call.seq_kv);
  if (complete && call.heads % call.kv_heads != 0) {
    table.problem("heads = " + std::to_string(call.heads) +
                      " is no multiple of kv_heads = " + std::to_string(call.kv_heads),
                  "every key head serves equally many query heads");
    return false;
  }
  return complete;
}

bool read_kind(MeasuredTable& table, AttentionMeasurement& row, bool any_software) {
  const std::string_view causal = table.text(kCausal), stack = table.text(kStack);
  const auto direction = direction_of(table.text(kDirection));
  const auto implementation = implementation_of(stack);
  if (causal != "0" && causal != "1") {
    table.problem("causal = '" + std::string(causal) + "'", "write 0 or 1");
    return false;
  }
  if (!direction) {
    table.problem("direction = '" + std::string(table.text(kDirection)) + "' is not known",
                  "forward, backward or forward+backward");
    return false;
  }
  row.known = implementation.has_value();
  if (!implementation && !known_without_model(stack) && !any_software) {
    table.problem("stack = '" + std::string(stack) + "' is not known",
                  "name it in lab/fit/attention/attention_table.cpp with its implementation");
    return false;
  }
  row.call.causal = causal == "1";
  row.call.direction = *direction;
  row.call.implementation = implementation.value_or(AttentionImplementation::flash2);
  row.fused = implementation.has_value() || !known_without_model(stack);
  row.served = stack.find('/') != std::string_view::npos;
  row.by_eye = table.text(kSource).ends_with(".png");
  return true;
}

const std::vector<std::string> kAttentionColumns{"gpu",    "direction",  "causal",   "batch",
                                                 "heads",  "kv_heads",   "head_dim", "seq_q",
                                                 "seq_kv", "latency_us", "stack",    "source"};

/// Number format, window, and heads whose values are of another size (as heads of the mean).
void read_extras(MeasuredTable& table, AttentionMeasurement& row) {
  row.eight_bits = table.text(kDtype) == "fp8";
  row.eight_bit_cache = table.text(kCacheDtype) == "fp8";
  if (!table.text(kWindow).empty() && table.text(kWindow) != "0")
    row.window = table.extent(kWindow).value_or(0);
  if (table.text(kHeadDimV).empty()) return;
  if (const auto values = table.extent(kHeadDimV))
    row.call.head_dim = (row.call.head_dim + *values + 1) / 2;
}

AttentionTable read_table(MeasuredTable& table, const std::filesystem::path& path,
                          bool to_predict) {
  AttentionTable result{.file = path.filename().string(),
                        .fnv1a = table.hash(),
                        .rows = {},
                        .text = table.file_text(),
                        .header = table.header()};
  while (table.next()) {
    AttentionMeasurement row;
    row.gpu = table.text(kGpu);
    row.stack = table.text(kStack);
    const bool kind = read_kind(table, row, to_predict), extents = read_extents(table, row.call);
    const auto seconds =
        to_predict ? table.optional_microseconds(kLatency) : table.microseconds(kLatency);
    if (!kind || !extents || !seconds) continue;
    if (to_predict) read_extras(table, row);
    row.seconds = *seconds;
    row.line = table.row();
    row.held_out = !row.by_eye && held_out_shape(shape_key(table));
    result.rows.push_back(std::move(row));
  }
  table.finish();
  result.bad_rows = table.bad_rows();
  return result;
}

}  // namespace

AttentionTable read_attention(const std::filesystem::path& path) {
  MeasuredTable table(path, kAttentionColumns);
  return read_table(table, path, false);
}

AttentionTable read_attention_to_predict(const std::filesystem::path& path) {
  MeasuredTable table(path, kAttentionColumns, {"dtype", "window", "head_dim_v", "kv_cache_dtype"});
  return read_table(table, path, true);
}

}  // namespace tessera
