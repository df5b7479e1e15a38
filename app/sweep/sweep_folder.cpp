#include "app/sweep/sweep_folder.h"

#include <algorithm>
#include <system_error>

#include "app/sweep/sweep_text.h"
#include "hw/units/input_error.h"
#include "hw/units/replace_file.h"

namespace tessera {

namespace fs = std::filesystem;

fs::path SweepFolder::store_file(const PointChoice& choice) const {
  if (choice.shards == 1) return folder_ / "results.sqlite";
  return folder_ / ("shard-" + std::to_string(choice.shard) + "-of-" +
                    std::to_string(choice.shards) + ".sqlite");
}

void SweepFolder::make() const {
  std::error_code failure;
  fs::create_directories(folder_, failure);
  if (failure)
    throw InputError(Problem{folder_.string(), "cannot be made: " + failure.message(),
                             "name a folder that you may write"});
}

std::unique_ptr<SweepStore> SweepFolder::open(const PointChoice& choice,
                                              const SweepIdentity& identity, bool resume) const {
  make();
  const fs::path file = store_file(choice);
  std::error_code unknown;  // opening the store says what is wrong
  if (!resume && fs::exists(file, unknown))
    throw InputError(Problem{file.string(), "holds results already",
                             "go on with --resume, or name another folder"});
  return std::make_unique<SweepStore>(file, identity);
}

void SweepFolder::start_shards(int shards, bool resume) const {
  make();
  const std::vector<fs::path> files = shard_files();
  if (!resume && !files.empty())
    throw InputError(Problem{files.front().string(), "holds results already",
                             "go on with --resume, or name another folder"});
  for (int shard = 1; shard <= shards; ++shard) {
    fs::path mark = store_file({.shard = shard, .shards = shards});
    std::error_code ignored;
    fs::remove(mark.replace_extension(".done"), ignored);
  }
}

std::vector<fs::path> SweepFolder::shard_files() const {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("shard-") && name.ends_with(".sqlite")) files.push_back(entry.path());
  }
  if (failure)
    throw InputError(Problem{folder_.string(), "cannot be read: " + failure.message(),
                             "name the folder that the shards wrote to"});
  std::ranges::sort(files);
  return files;
}

std::unique_ptr<SweepStore> SweepFolder::merge() const {
  const std::vector<fs::path> files = shard_files();
  const fs::path merged = store_file(PointChoice());
  if (files.empty())
    throw InputError(Problem{folder_.string(), "holds no store of a shard",
                             "run tessera sweep FILE --out FOLDER --shard i/n first"});
  std::unique_ptr<SweepStore> store;
  for (const fs::path& file : files) {
    SweepStore shard(file);
    if (!store) store = std::make_unique<SweepStore>(merged, shard.identity());
    store->take_over(shard);
  }
  return store;
}

void SweepFolder::export_results(SweepStore& store, const std::string& format) const {
  if (format == "jsonl") {
    replace_file(folder_ / "results.jsonl", sweep_jsonl(store));
  } else {
    replace_file(folder_ / "results.csv", sweep_csv(store));
  }
}

}  // namespace tessera
