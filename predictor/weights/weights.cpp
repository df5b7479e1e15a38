#include "predictor/weights/weights.h"

#include <system_error>
#include <utility>

#include "hw/units/fnv1a.h"
#include "hw/units/read_file.h"
#include "hw/units/replace_file.h"
#include "predictor/weights/refuse_weights.h"
#include "predictor/weights/weights.pb.h"
#include "predictor/weights/weights_fp32.h"
#include "predictor/weights/weights_update.h"

namespace tessera {
namespace {

[[noreturn]] void refuse_file(const std::filesystem::path& path, std::string what) {
  refuse_weights(path, std::move(what), "with --out to a new file");
}

weights::Weights message_of(const PredictorWeights& from) {
  weights::Weights to;
  to.set_schema_version(PredictorWeights::kSchemaVersion);
  if (from.trained()) write_fp32(from, *to.mutable_fp32());
  if (from.tensor_gemm) write(*from.tensor_gemm, *to.mutable_tensor_gemm());
  if (from.attention) write(*from.attention, *to.mutable_attention());
  return to;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// Sections are of any version.
weights::Weights parsed_file(const std::filesystem::path& path) {
  weights::Weights message;
  if (!message.ParseFromString(read_whole_file(path, "install Tessera anew")))
    refuse_file(path, "is not a weights file");
  if (message.schema_version() != PredictorWeights::kSchemaVersion)
    refuse_file(path, "has schema version " + std::to_string(message.schema_version()) + ", not " +
                          std::to_string(PredictorWeights::kSchemaVersion));
  return message;
}

}  // namespace

PredictorWeights load_weights(const std::filesystem::path& path) {
  if (!is_there(path)) refuse_file(path, "cannot be opened");
  const weights::Weights message = parsed_file(path);
  PredictorWeights result;
  if (message.has_fp32()) read_fp32(message.fp32(), path, result);
  if (message.has_tensor_gemm()) result.tensor_gemm = tensor_weights(message.tensor_gemm(), path);
  if (message.has_attention()) result.attention = attention_weights(message.attention(), path);
  return result;
}

void save_weights(const PredictorWeights& weights, const std::filesystem::path& path) {
  replace_file(path, message_of(weights).SerializeAsString());
}

void require_updatable(const std::filesystem::path& path) {
  if (is_there(path)) parsed_file(path);
}

void update_weights(const PredictorWeights& trained, const std::filesystem::path& path) {
  weights::Weights file = is_there(path) ? parsed_file(path) : weights::Weights();
  const weights::Weights sections = message_of(trained);
  if (sections.has_fp32()) file.clear_fp32();
  if (sections.has_tensor_gemm()) file.clear_tensor_gemm();
  if (sections.has_attention()) file.clear_attention();
  file.MergeFrom(sections);
  replace_file(path, file.SerializeAsString());
}

std::uint64_t fingerprint(const PredictorWeights& weights) {
  return fnv1a(message_of(weights).SerializeAsString());
}

}  // namespace tessera
