#include "sim/validate/framework_aliases.h"

#include <algorithm>
#include <cctype>

#include "hw/units/input_error.h"
#include "sim/validate/csv.h"
#include "sim/validate/row_reader.h"

namespace tessera {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

FrameworkAliases::FrameworkAliases(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"framework", "profile"});
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    const RowReader reader(table, row, problems);
    const std::string nccl = reader.text("nccl");
    aliases_.push_back({lower(reader.text("framework")), reader.text("profile"),
                        nccl.empty() ? NcclTuner::current : NcclTuner::v2_8});
    if (!nccl.empty() && nccl != "2.8")
      problems.push_back(
          {reader.where(), "nccl = '" + nccl + "' is not known", "use 2.8, or leave it empty"});
    if (aliases_.back().part.empty() || aliases_.back().profile.empty())
      problems.push_back({reader.where(), "a field is empty", "give a framework and a profile"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::string FrameworkAliases::profile_of(const std::string& framework,
                                         const Catalog& catalog) const {
  std::string id = framework;
  std::ranges::replace(id, '_', '-');
  if (catalog.has(CatalogKind::frameworks, id)) return id;
  const Alias* alias = find(framework);
  return alias == nullptr ? std::string() : alias->profile;
}

NcclTuner FrameworkAliases::tuner_of(const std::string& framework) const {
  const Alias* alias = find(framework);
  return alias == nullptr ? NcclTuner::current : alias->tuner;
}

const FrameworkAliases::Alias* FrameworkAliases::find(const std::string& framework) const {
  const std::string name = lower(framework);
  const Alias* best = nullptr;
  for (const Alias& alias : aliases_) {
    if (name.find(alias.part) == std::string::npos) continue;
    if (best == nullptr || alias.part.size() > best->part.size()) best = &alias;
  }
  return best;
}

FrameworkAliases framework_aliases(const Catalog& catalog) {
  return FrameworkAliases(catalog.folder(CatalogKind::frameworks) / "aliases.csv");
}

}  // namespace tessera
