#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "app/import/imported.h"
#include "hw/units/input_error.h"
#include "sim/config/files/cluster_yaml.h"
#include "sim/config/load.h"
#include "tests/hw/units/scratch.h"

namespace tessera::test {

inline const Catalog& shipped_catalog() {
  static const Catalog catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
  return catalog;
}

inline GpuSpec find_gpu(const std::string& id) {
  return load_gpu(id, shipped_catalog());
}

/// A file of the fuzzers' corpus.
inline std::string sample(const std::string& file) {
  std::ifstream stream(std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/fuzz/corpus" / file);
  std::ostringstream text;
  text << stream.rdbuf();
  EXPECT_FALSE(text.str().empty()) << file;
  return text.str();
}

/// The message of an importer that has to refuse `text`.
template <class Importer>
std::string refusal(Importer importer, const std::string& text, const std::string& gpu = "") {
  try {
    importer(text, "file", ImportOptions{gpu, {}}, find_gpu);
  } catch (const InputError& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

/// What `tessera import` writes, read again.
inline ClusterSpec written_and_read(const Imported& imported) {
  const ScratchFolder folder;
  const auto file = folder.write(imported.cluster.id + ".yaml",
                                 cluster_yaml(imported.cluster, imported.gpu, shipped_catalog()));
  return load_cluster(file.string(), shipped_catalog());
}

}  // namespace tessera::test
