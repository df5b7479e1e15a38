#include "predictor/weights/weights.h"

#include <system_error>

#include "hw/units/fnv1a.h"
#include "hw/units/input_error.h"
#include "hw/units/read_file.h"
#include "hw/units/replace_file.h"
#include "predictor/weights/weights.pb.h"
#include "predictor/weights/weights_fp32.h"

namespace tessera {
namespace {

weights::Weights message_of(const PredictorWeights& from) {
  weights::Weights to;
  to.set_schema_version(PredictorWeights::kSchemaVersion);
  if (from.trained()) write_fp32(from, *to.mutable_fp32());
  if (from.tensor_gemm) write(*from.tensor_gemm, *to.mutable_tensor_gemm());
  if (from.attention) write(*from.attention, *to.mutable_attention());
  if (from.half_memory) write(*from.half_memory, *to.mutable_half_memory());
  return to;
}

}  // namespace

PredictorWeights load_weights(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) refuse_weights(path, "cannot be opened");
  weights::Weights message;
  if (!message.ParseFromString(read_whole_file(path, "install Tessera anew")))
    refuse_weights(path, "is not a weights file");
  if (message.schema_version() != PredictorWeights::kSchemaVersion)
    refuse_weights(path, "has schema version " + std::to_string(message.schema_version()) +
                             ", not " + std::to_string(PredictorWeights::kSchemaVersion));
  PredictorWeights result;
  if (message.has_fp32()) read_fp32(message.fp32(), path, result);
  if (message.has_tensor_gemm()) result.tensor_gemm = tensor_weights(message.tensor_gemm(), path);
  if (message.has_attention()) result.attention = attention_weights(message.attention(), path);
  if (message.has_half_memory())
    result.half_memory = half_memory_weights(message.half_memory(), path);
  return result;
}

PredictorWeights load_weights_if_any(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? load_weights(path) : PredictorWeights();
}

void save_weights(const PredictorWeights& weights, const std::filesystem::path& path) {
  replace_file(path, message_of(weights).SerializeAsString());
}

std::uint64_t fingerprint(const PredictorWeights& weights) {
  weights::Weights corrected = message_of(weights);
  corrected.clear_half_memory();
  return fnv1a(corrected.SerializeAsString());
}

}  // namespace tessera
