#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/sweep/sweep_grid.h"
#include "app/sweep/sweep_store.h"

namespace tessera {

/// The folder that a sweep writes: results.sqlite with results.csv or results.jsonl, or one store
/// per shard (shard-2-of-8.sqlite) until they are merged.
class SweepFolder {
 public:
  explicit SweepFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path store_file(const PointChoice& choice) const;
  /// Makes the folder and the store. Throws InputError where the store exists and `resume` is
  /// false.
  std::unique_ptr<SweepStore> open(const PointChoice& choice, const SweepIdentity& identity,
                                   bool resume) const;
  /// Makes the folder ready for `shards` runs elsewhere: removes the marks of earlier ones. Throws
  /// InputError where stores of shards exist and `resume` is false.
  void start_shards(int shards, bool resume) const;
  /// Stores of shards, in the order of their names.
  std::vector<std::filesystem::path> shard_files() const;
  /// Everything that the shards' stores hold, in results.sqlite. Throws InputError where there is
  /// no shard, or one is being written.
  std::unique_ptr<SweepStore> merge() const;
  /// Writes results.csv or results.jsonl ("csv", "jsonl").
  void export_results(SweepStore& store, const std::string& format) const;

 private:
  void make() const;

  std::filesystem::path folder_;
};

}  // namespace tessera
