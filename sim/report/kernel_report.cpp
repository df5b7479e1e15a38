#include "sim/report/kernel_report.h"

namespace tessera {

std::vector<std::pair<std::string, std::int64_t>> sizes_of(const KernelMeasurement& call) {
  switch (call.op) {
    case MeasuredOp::linear:
    case MeasuredOp::bmm:
      return {{"batch", call.batch}, {"m", call.m}, {"n", call.n}, {"k", call.k}};
    case MeasuredOp::conv2d:
      return {{"batch", call.batch},        {"in_channels", call.k},   {"out_channels", call.n},
              {"kernel_size", call.window}, {"input_size", call.rows}, {"stride", call.stride},
              {"padding", call.padding}};
    default:
      return {{"rows", call.rows}, {"cols", call.cols}};
  }
}

std::string_view split_of(const KernelMeasurement& row) {
  if (row.test) return "test";
  return row.train ? "train" : "none";
}

std::string_view name_of(CallTiming timing) {
  switch (timing) {
    case CallTiming::graph:
      return "graph";
    case CallTiming::queue:
      return "queue";
    case CallTiming::isolated:
      break;
  }
  return "isolated";
}

std::string_view direction_words(AttentionDirection direction) {
  switch (direction) {
    case AttentionDirection::forward:
      return "forward";
    case AttentionDirection::backward:
      return "backward";
    case AttentionDirection::forward_backward:
      break;
  }
  return "forward+backward";
}

}  // namespace tessera
