#include "lab/validate/runs/framework_aliases.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "hw/units/input_error.h"
#include "hw/units/lower_case.h"
#include "lab/validate/row_reader.h"
#include "sim/config/files/csv.h"

namespace tessera {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

struct Generation {
  std::string_view name;
  Architecture architecture;
};
constexpr std::array kGenerations{
    Generation{"volta", Architecture::volta},   Generation{"turing", Architecture::turing},
    Generation{"ampere", Architecture::ampere}, Generation{"ada", Architecture::ada},
    Generation{"hopper", Architecture::hopper}, Generation{"blackwell", Architecture::blackwell}};

}  // namespace

int year_in(const std::string& text) {
  for (std::size_t at = text.find("20"); at != std::string::npos; at = text.find("20", at + 1)) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    const bool alone =
        end == at + 4 && (at == 0 || (!is_digit(text[at - 1]) && text[at - 1] != '.'));
    if (alone) return std::stoi(text.substr(at, 4));
  }
  return 0;
}

FrameworkAliases::FrameworkAliases(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"framework", "profile"});
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    RowReader reader(table, row, problems);
    const std::string nccl = reader.text("nccl");
    Alias alias{.part = lower_case(reader.text("framework")),
                .profile = reader.text("profile"),
                .tuner = nccl.empty() ? NcclTuner::current : NcclTuner::v2_8};
    alias.until = reader.text("until");
    alias.later = reader.text("later");
    if (!nccl.empty() && nccl != "2.8") reader.complain("nccl", "use 2.8, or leave it empty");
    if (!read_until(alias))
      reader.complain("until", "write a generation such as ampere, unfused, a year, or nothing");
    if (alias.part.empty() || alias.profile.empty())
      problems.push_back({reader.where(), "a field is empty", "give a framework and a profile"});
    aliases_.push_back(std::move(alias));
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

bool FrameworkAliases::read_until(Alias& alias) {
  std::istringstream words(alias.until);
  for (std::string word; words >> word;) {
    const auto generation = std::ranges::find(kGenerations, word, &Generation::name);
    if (generation != kGenerations.end()) {
      alias.newest = generation->architecture;
    } else if (word == "unfused") {
      alias.unfused = true;
    } else if (year_in(word) > 0) {
      alias.last_year = year_in(word);
    } else {
      return false;
    }
  }
  return true;
}

ProfileChoice FrameworkAliases::choice_of(const std::string& framework, const RunFacts& facts,
                                          const Catalog& catalog) const {
  if (framework.empty()) return {.profile = "megatron-local"};
  const Alias* alias = find(framework);
  std::string id = framework;
  std::ranges::replace(id, '_', '-');
  if (catalog.has(CatalogKind::frameworks, id))
    return {id, alias == nullptr ? NcclTuner::current : alias->tuner};
  if (alias == nullptr)
    throw InputError({facts.where, "framework = '" + framework + "' stands for no profile",
                      "add it to configs/frameworks/aliases.csv"});
  if (!alias->is_older_than(facts)) return {alias->profile, alias->tuner};
  if (!alias->later.empty()) return {.profile = alias->later};
  throw InputError({facts.where,
                    "framework = '" + framework + "' stands for " + alias->profile + " (until " +
                        alias->until + "), and the row is newer" +
                        (facts.architecture > alias->newest ? ": " + facts.gpu : ""),
                    "name a profile that is as new in the column framework"});
}

const FrameworkAliases::Alias* FrameworkAliases::find(const std::string& framework) const {
  const std::string name = lower_case(framework);
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
