#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/catalog.h"
#include "sim/config/files/csv.h"

namespace tessera {

/// What a row states, by column; empty fields are left out.
using RowFields = std::map<std::string, std::string>;

RowFields stated_fields(const CsvTable& table, const CsvTable::Row& row);

/// A column of files of measured steps.
struct RowColumn {
  enum class Kind : std::uint8_t {
    text,
    word,    ///< one of `words`; any other is not simulated
    flag,    ///< 1 or 0
    count,   ///< from 1 to 10^9
    size,    ///< the same, and 0 for none
    number,  ///< above 0
  };
  std::string name;
  Kind kind = Kind::text;
  std::string path;  ///< the scenario's field that it sets; empty where code reads it, or nothing
  std::vector<std::pair<std::string, std::string>> words;  ///< as written, as the field has it
  std::string hint;                                        ///< behind "is not simulated"

  /// The field's word for `text`; null where the simulation lacks it.
  const std::string* word_of(const std::string& text) const;
};

/// What a row says beside its columns.
struct RowMeaning {
  RowFields fields;                         ///< with those that follow from words
  std::vector<std::string> settings;        ///< "path=value"
  std::vector<std::string> approximations;  ///< what the row states and the simulation leaves out
  std::string obstacle;                     ///< why it cannot be simulated; empty if it can
};

/// What columns of measured steps mean, and what their words say: which field of a scenario a
/// column sets, and rules such as "where the notes hold torch.compile, kernels are fused". A rule
/// fills in what the row does not state; the first one that does so wins.
class RowRules {
 public:
  /// Reads columns.csv (column, kind, path, words as a|b>field's word, hint) and rules.csv (when,
  /// then) of `folder`. Throws InputError with everything that is wrong in them.
  explicit RowRules(const std::filesystem::path& folder);

  const std::vector<RowColumn>& columns() const { return columns_; }
  bool knows(const std::string& column) const;
  RowMeaning meaning_of(RowFields fields) const;

 private:
  /// "column = a|b", != , ~ (a part of it), !~, ^ (its beginning).
  struct Condition {
    std::string name;
    std::string sign;
    std::vector<std::string> values;
    bool holds(const std::string& text) const;
  };
  struct Rule {
    std::vector<Condition> when;
    std::vector<std::pair<std::string, std::string>> then;
  };

  void read_columns(const std::filesystem::path& file);
  void read_rules(const std::filesystem::path& file);
  static std::vector<Condition> conditions_of(const std::string& text);
  static std::vector<std::pair<std::string, std::string>> results_of(const std::string& text);

  std::vector<RowColumn> columns_;
  std::vector<Rule> rules_;
};

/// The shipped ones: folder measurements of the catalog.
RowRules row_rules(const Catalog& catalog);

}  // namespace tessera
