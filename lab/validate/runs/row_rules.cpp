#include "lab/validate/runs/row_rules.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "hw/units/input_error.h"
#include "lab/validate/row_reader.h"

namespace tessera {
namespace {

constexpr std::array<std::pair<std::string_view, RowColumn::Kind>, 6> kKinds{
    {{"text", RowColumn::Kind::text},
     {"word", RowColumn::Kind::word},
     {"flag", RowColumn::Kind::flag},
     {"count", RowColumn::Kind::count},
     {"size", RowColumn::Kind::size},
     {"number", RowColumn::Kind::number}}};

constexpr const char* kObstacle = "not_simulated";
constexpr const char* kApproximate = "approximate";

/// The parts of `text` between `separator`s; an empty text has one empty part.
std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + separator.size();
  }
}

std::string text_in(const RowFields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

/// `text` with what `fields` hold in place of {names}.
std::string filled_in(std::string text, const RowFields& fields) {
  for (std::size_t begin = text.find('{'); begin != std::string::npos;
       begin = text.find('{', begin)) {
    const std::size_t end = text.find('}', begin);
    if (end == std::string::npos) return text;
    const std::string value = text_in(fields, text.substr(begin + 1, end - begin - 1));
    text.replace(begin, end - begin + 1, value);
    begin += value.size();
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> replacements_in(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> words;
  if (text.empty()) return words;
  for (const std::string& part : split(text, "|")) {
    const std::size_t sign = part.find('>');
    const std::string word = part.substr(0, sign);
    words.emplace_back(word, sign == std::string::npos ? word : part.substr(sign + 1));
  }
  return words;
}

bool is_path(const std::string& name) {
  return name.find('.') != std::string::npos;
}

}  // namespace

RowFields stated_fields(const CsvTable& table, const CsvTable::Row& row) {
  RowFields fields;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!row.fields[i].empty()) fields[table.columns[i]] = row.fields[i];
  }
  return fields;
}

const std::string* RowColumn::word_of(const std::string& text) const {
  const auto found = std::ranges::find(words, text, &std::pair<std::string, std::string>::first);
  return found == words.end() ? nullptr : &found->second;
}

RowRules::RowRules(const std::filesystem::path& folder) {
  read_columns(folder / "columns.csv");
  read_rules(folder / "rules.csv");
}

void RowRules::read_columns(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"column", "kind", "path", "words", "hint"});
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    RowReader reader(table, row, problems);
    RowColumn column{.name = reader.text("column"),
                     .kind = RowColumn::Kind::text,
                     .path = reader.text("path"),
                     .words = replacements_in(reader.text("words")),
                     .hint = reader.text("hint")};
    const auto kind = std::ranges::find(kKinds, reader.text("kind"),
                                        &std::pair<std::string_view, RowColumn::Kind>::first);
    if (kind == kKinds.end())
      reader.complain("kind", "write text, word, flag, count, size or number");
    else
      column.kind = kind->second;
    if (knows(column.name)) reader.complain("column", "name each column once");
    columns_.push_back(std::move(column));
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

void RowRules::read_rules(const std::filesystem::path& file) {
  const CsvTable table = read_csv(file);
  require_columns(table, {"when", "then"});
  std::vector<Problem> problems;
  for (const CsvTable::Row& row : table.rows) {
    RowReader reader(table, row, problems);
    Rule rule{conditions_of(reader.text("when")), results_of(reader.text("then"))};
    if (rule.when.empty())
      reader.complain("when",
                      "write column=a|b, !=, ~ (a part), !~ or ^ (its beginning), with & "
                      "between several");
    if (rule.then.empty()) reader.complain("then", "write column=value or path=value");
    rules_.push_back(std::move(rule));
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

/// None where one of them cannot be read.
std::vector<RowRules::Condition> RowRules::conditions_of(const std::string& text) {
  std::vector<Condition> conditions;
  for (const std::string& part : split(text, " & ")) {
    const std::size_t begin = part.find_first_of("!=~^");
    if (begin == std::string::npos || begin == 0) return {};
    const std::size_t length = part[begin] == '!' ? 2 : 1;
    Condition condition{part.substr(0, begin), part.substr(begin, length), {}};
    if (condition.sign != "!=" && condition.sign != "!~" && length == 2) return {};
    condition.values = split(part.substr(begin + length), "|");
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

/// None where one of them cannot be read.
std::vector<std::pair<std::string, std::string>> RowRules::results_of(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> results;
  for (const std::string& part : split(text, " & ")) {
    const std::size_t sign = part.find('=');
    if (sign == std::string::npos || sign == 0 || sign + 1 == part.size()) return {};
    results.emplace_back(part.substr(0, sign), part.substr(sign + 1));
  }
  return results;
}

bool RowRules::knows(const std::string& column) const {
  return std::ranges::find(columns_, column, &RowColumn::name) != columns_.end();
}

bool RowRules::Condition::holds(const std::string& text) const {
  const bool found = std::ranges::any_of(values, [&](const std::string& value) {
    if (sign == "^") return text.starts_with(value);
    return sign.ends_with('~') ? text.find(value) != std::string::npos : text == value;
  });
  return found != sign.starts_with('!');
}

RowMeaning RowRules::meaning_of(RowFields fields) const {
  RowMeaning meaning;
  std::vector<std::string> paths;
  for (const Rule& rule : rules_) {
    const bool applies = std::ranges::all_of(rule.when, [&](const Condition& condition) {
      return condition.holds(text_in(fields, condition.name));
    });
    if (!applies) continue;
    for (const auto& [name, text] : rule.then) {
      const std::string value = filled_in(text, fields);
      if (name == kApproximate) {
        meaning.approximations.push_back(value);
      } else if (name == kObstacle) {
        if (meaning.obstacle.empty()) meaning.obstacle = value;
      } else if (fields.emplace(name, value).second && is_path(name)) {
        paths.push_back(name);
      }
    }
  }
  for (const std::string& path : paths) {
    meaning.settings.push_back(path + "=" + fields[path]);
    fields.erase(path);
  }
  meaning.fields = std::move(fields);
  return meaning;
}

RowRules row_rules(const Catalog& catalog) {
  return RowRules(catalog.folder(CatalogKind::frameworks).parent_path() / "measurements");
}

}  // namespace tessera
