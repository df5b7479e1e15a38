#include "predictor/weights/weights.h"

#include <gtest/gtest.h>

#include "hw/units/input_error.h"
#include "predictor/weights/weights_update.h"
#include "tests/predictor/test_files.h"
#include "tests/predictor/weights_bytes.h"

namespace tessera {
namespace {

std::string message_of(const std::filesystem::path& path) {
  try {
    load_weights(path);
  } catch (const InputError& error) {
    return error.problems().front().text();
  }
  return "";
}

TEST(Weights, RoundTripGivesTheSameBytes) {
  const ScratchFolder folder;
  const PredictorWeights weights = load_weights(committed_weights());
  save_weights(weights, folder.path() / "copy.pb");
  EXPECT_TRUE(read_file(folder.path() / "copy.pb") == read_file(committed_weights()));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "copy.pb.tmp"));
}

TEST(Weights, CommittedOnesStateTheirProvenance) {
  const PredictorWeights weights = load_weights(committed_weights());
  ASSERT_FALSE(weights.data.empty());  // fp32_conv.csv may follow
  EXPECT_EQ(weights.data[0].file, "fp32.csv");
  EXPECT_NE(weights.data[0].fnv1a, 0u);
  EXPECT_EQ(weights.gpus.size(), 5u);
  EXPECT_FALSE(weights.logo.empty());
  for (const TrainedGpu& gpu : weights.gpus)
    for (const char* unseen : {"H100", "H200", "L4", "80GB"})
      EXPECT_EQ(gpu.effect.gpu.find(unseen), std::string::npos) << gpu.effect.gpu;
}

TEST(Weights, DamagedAndMissingFilesAreNamed) {
  const ScratchFolder folder;
  const auto text = folder.write("text.pb", "these are no weights");
  EXPECT_NE(message_of(text).find("text.pb"), std::string::npos);
  EXPECT_NE(message_of(folder.path() / "absent.pb").find("cannot be opened"), std::string::npos);
  // An empty file is a valid message without a version.
  EXPECT_NE(message_of(folder.write("empty.pb", "")).find("schema version 0"), std::string::npos);
}

TEST(Weights, ATruncatedFileIsRefused) {
  const ScratchFolder folder;
  const std::string whole = read_file(committed_weights());
  for (const std::size_t size : {whole.size() / 100, whole.size() / 2, whole.size() - 3})
    EXPECT_NE(message_of(folder.write("cut.pb", whole.substr(0, size))), "") << size;
}

TEST(Weights, ASectionIsReplacedWithoutAByteOfTheOthers) {
  const ScratchFolder folder;
  const std::string whole = read_file(committed_weights());
  PredictorWeights changed = load_weights(committed_weights());
  changed.attention->copied_spread += 0.01;
  const std::string other = bytes_of(changed, folder);
  ASSERT_EQ(other.size(), whole.size());
  std::size_t differing = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) differing += whole[i] != other[i] ? 1 : 0;
  EXPECT_GT(differing, 0u);
  EXPECT_LE(differing, 8u);  // one number
}

TEST(Weights, TheFingerprintNamesWhatOverlaysCorrect) {
  const PredictorWeights shipped = load_weights(committed_weights());
  PredictorWeights changed = shipped;
  EXPECT_EQ(fingerprint(changed), fingerprint(shipped));
  changed.attention->copied_spread += 0.01;
  EXPECT_NE(fingerprint(changed), fingerprint(shipped));
}

TEST(Weights, EverySectionIsOptional) {
  const ScratchFolder folder;
  PredictorWeights tensor;
  tensor.tensor_gemm = load_weights(committed_weights()).tensor_gemm;
  bytes_of(tensor, folder);
  const PredictorWeights loaded = load_weights(folder.path() / "weights.pb");
  EXPECT_FALSE(loaded.trained());
  EXPECT_FALSE(loaded.attention);
  ASSERT_TRUE(loaded.tensor_gemm);
  EXPECT_EQ(loaded.tensor_gemm->shared.values(), tensor.tensor_gemm->shared.values());
}

/// The shipped file, its FP32 kernels of the next feature version.
std::string with_stale_fp32() {
  const std::string versions(
      "\x08\x01\x10\x01\x1a\x04"
      "fp32");  // schema 1, feature 1
  std::string bytes = read_file(committed_weights());
  bytes.at(bytes.find(versions) + 3) = 2;
  return bytes;
}

PredictorWeights fp32_alone() {
  PredictorWeights weights = load_weights(committed_weights());
  weights.tensor_gemm.reset();
  weights.attention.reset();
  return weights;
}

PredictorWeights products_alone() {
  PredictorWeights weights;
  weights.tensor_gemm = load_weights(committed_weights()).tensor_gemm;
  return weights;
}

TEST(Weights, ASectionOfAnotherVersionCanBeTrainedAgain) {
  const ScratchFolder folder;
  const auto file = folder.write("stale.pb", with_stale_fp32());
  EXPECT_NE(message_of(file).find("feature version 2, not 1"), std::string::npos);
  EXPECT_NE(message_of(file).find("run tessera train"), std::string::npos);
  EXPECT_NO_THROW(require_updatable(file));
  update_weights(fp32_alone(), file);
  EXPECT_TRUE(read_file(file) == read_file(committed_weights()));
}

TEST(Weights, ATrainedSectionLeavesOthersAsTheyAreHoweverOld) {
  const ScratchFolder folder;
  const auto file = folder.write("stale.pb", with_stale_fp32());
  PredictorWeights changed = products_alone();
  changed.tensor_gemm->shared.prologue += 1;
  update_weights(changed, file);
  EXPECT_NE(message_of(file).find("feature version 2, not 1"), std::string::npos);
  update_weights(products_alone(), file);
  EXPECT_TRUE(read_file(file) == with_stale_fp32());
}

TEST(Weights, AFileThatTakesNoSectionIsLeftAlone) {
  const ScratchFolder folder;
  const auto text = folder.write("text.pb", "these are no weights");
  EXPECT_THROW(require_updatable(text), InputError);
  EXPECT_THROW(update_weights(products_alone(), text), InputError);
  EXPECT_EQ(read_file(text), "these are no weights");
  const auto absent = folder.path() / "absent.pb";
  EXPECT_NO_THROW(require_updatable(absent));
  update_weights(products_alone(), absent);
  EXPECT_TRUE(load_weights(absent).tensor_gemm);
}

}  // namespace
}  // namespace tessera
