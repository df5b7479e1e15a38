#include "sim/sweep/sweep_store.h"

#include <array>
#include <nlohmann/json.hpp>

#include "hw/units/input_error.h"
#include "sim/sweep/axis_values.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr std::int64_t kStoreFormat = 1;
constexpr std::int64_t kApplicationId = 0x54455353;  // "TESS"

constexpr std::array<const char*, 4> kOutcomeNames = {"ok", "invalid", "failed", "timeout"};

PointOutcome outcome_called(const std::string& name) {
  for (std::size_t i = 0; i < kOutcomeNames.size(); ++i)
    if (name == kOutcomeNames[i]) return static_cast<PointOutcome>(i);
  return PointOutcome::failed;
}

/// FNV-1a with 128 bits (Fowler, Noll and Vo; draft-eastlake-fnv): two of 10^9 scenarios get the
/// same key with a chance of 10^-21.
class KeyHash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) add_byte(static_cast<unsigned char>(byte));
    add_byte(0xFF);  // an end that is in no UTF-8 text
  }
  std::string hexadecimal() const {
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(state_ >> 64),
                  static_cast<unsigned long long>(state_));
    return text.data();
  }

 private:
  __extension__ using Wide = unsigned __int128;
  void add_byte(unsigned char byte) { state_ = (state_ ^ byte) * kPrime; }

  static constexpr Wide kPrime = (Wide{1} << 88) + 0x13B;
  Wide state_ = (Wide{0x6C62272E07BB0142} << 64) + 0x62B821756295C58D;
};

std::string values_text(const std::vector<std::string>& values) {
  return json(values).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A table of the store holds JSON that only this program writes.
std::vector<std::string> values_of_text(const std::string& text,
                                        const std::filesystem::path& file) {
  try {
    return json::parse(text).get<std::vector<std::string>>();
  } catch (const json::exception&) {
    throw InputError(Problem{file.string(), "holds what no sweep wrote: " + text.substr(0, 60),
                             "move it away and run again"});
  }
}

void add_expressions(KeyHash& hash, const std::vector<Expression>& expressions) {
  for (const Expression& expression : expressions) hash.add(expression.text());
}

}  // namespace

std::string name_of(PointOutcome outcome) {
  return kOutcomeNames[static_cast<std::size_t>(outcome)];
}

SweepIdentity identity_of(const SweepSpec& spec) {
  KeyHash hash;
  hash.add(one_line(spec.base));
  for (const FieldSetting& setting : spec.settings) {
    hash.add(setting.path);
    hash.add(one_line(setting.value));
  }
  for (const SweepAxis& axis : spec.axes) {
    for (const std::string& path : axis.paths) hash.add(path);
    for (const auto& step : axis.values)
      for (const YamlNode& value : step) hash.add(one_line(value));
  }
  for (const DerivedSetting& setting : spec.derived) {
    hash.add(setting.path);
    hash.add(setting.formula.text());
  }
  add_expressions(hash, spec.conditions);
  for (const SweepExclusion& exclusion : spec.exclusions)
    for (std::size_t i = 0; i < exclusion.paths.size(); ++i) {
      hash.add(exclusion.paths[i]);
      for (const YamlNode& value : exclusion.values[i]) hash.add(one_line(value));
    }
  return {spec.name, spec.columns(), hash.hexadecimal()};
}

std::string scenario_key(const Scenario& scenario, const std::string& made_with) {
  KeyHash hash;
  hash.add(made_with);
  hash.add(identifying_bytes(scenario));
  return hash.hexadecimal();
}

SweepStore::SweepStore(const std::filesystem::path& file, const SweepIdentity& identity)
    : database_(file) {
  check_format();
  read_identity();
  if (identity_.fingerprint != identity.fingerprint) write_identity(identity);
}

SweepStore::SweepStore(const std::filesystem::path& file)
    : database_(std::filesystem::exists(file)
                    ? file
                    : throw InputError(Problem{file.string(), "there is no such store",
                                               "name the folder of a sweep"})) {
  check_format();
  read_identity();
}

void SweepStore::check_format() {
  Statement query = database_.prepare("SELECT count(*) FROM sqlite_master");
  query.step();
  const bool is_new = query.integer(0) == 0;
  query.run();
  Statement id = database_.prepare("PRAGMA application_id");
  id.step();
  Statement version = database_.prepare("PRAGMA user_version");
  version.step();
  if (!is_new && (id.integer(0) != kApplicationId || version.integer(0) != kStoreFormat))
    throw InputError(Problem{database_.file().string(), "is no store of this version of tessera",
                             "use another folder"});
  if (!is_new) return;
  id.run();
  version.run();
  Transaction transaction(database_);
  database_.run("PRAGMA application_id=" + std::to_string(kApplicationId));
  database_.run("PRAGMA user_version=" + std::to_string(kStoreFormat));
  database_.run("CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)");
  database_.run(
      "CREATE TABLE results(key TEXT PRIMARY KEY, outcome TEXT NOT NULL, answer TEXT NOT NULL, "
      "wall_s REAL NOT NULL) WITHOUT ROWID");
  database_.run(
      "CREATE TABLE points(number INTEGER PRIMARY KEY, fields TEXT NOT NULL, key TEXT NOT NULL, "
      "reason TEXT NOT NULL)");
  transaction.commit();
}

void SweepStore::read_identity() {
  Statement query = database_.prepare("SELECT name, value FROM meta");
  std::map<std::string, std::string> meta;
  while (query.step()) meta[query.text(0)] = query.text(1);
  identity_ = {meta["sweep"], {}, meta["fingerprint"]};
  if (!meta["columns"].empty())
    identity_.columns = values_of_text(meta["columns"], database_.file());
}

void SweepStore::write_identity(const SweepIdentity& identity) {
  Transaction transaction(database_);
  database_.run("DELETE FROM points");
  const auto put = [&](const char* name, const std::string& value) {
    database_.prepare("INSERT OR REPLACE INTO meta VALUES(?, ?)")
        .bind(1, name)
        .bind(2, value)
        .run();
  };
  put("sweep", identity.name);
  put("columns", values_text(identity.columns));
  put("fingerprint", identity.fingerprint);
  transaction.commit();
  identity_ = identity;
}

std::optional<StoredResult> SweepStore::result(const std::string& key) {
  Statement query = database_.prepare("SELECT outcome, answer, wall_s FROM results WHERE key = ?");
  if (!query.bind(1, key).step()) return std::nullopt;
  return StoredResult{key, outcome_called(query.text(0)), query.text(1), query.real(2)};
}

void SweepStore::put_result(const StoredResult& result) {
  database_.prepare("INSERT OR REPLACE INTO results VALUES(?, ?, ?, ?)")
      .bind(1, result.key)
      .bind(2, name_of(result.outcome))
      .bind(3, result.answer)
      .bind(4, result.wall_s)
      .run();
}

void SweepStore::put_point(std::int64_t number, const std::string& values, const std::string& key,
                           const std::string& reason) {
  database_.prepare("INSERT OR REPLACE INTO points VALUES(?, ?, ?, ?)")
      .bind(1, number)
      .bind(2, values)
      .bind(3, key)
      .bind(4, reason)
      .run();
}

void SweepStore::add(const StoredResult& result, const std::vector<SweepPoint>& points) {
  Transaction transaction(database_);
  put_result(result);
  for (const SweepPoint& point : points)
    put_point(point.number, values_text(point.values), result.key, "");
  transaction.commit();
}

void SweepStore::add_points(const std::string& key, const std::vector<SweepPoint>& points) {
  Transaction transaction(database_);
  for (const SweepPoint& point : points)
    put_point(point.number, values_text(point.values), key, "");
  transaction.commit();
}

void SweepStore::add_invalid(const SweepPoint& point, const std::string& reason) {
  Transaction transaction(database_);
  put_point(point.number, values_text(point.values), "", reason);
  transaction.commit();
}

void SweepStore::take_over(SweepStore& other) {
  if (other.identity_.fingerprint != identity_.fingerprint)
    throw InputError(Problem{other.database_.file().string(),
                             "belongs to another sweep than " + database_.file().string(),
                             "merge shards of one sweep file; a changed file makes another sweep"});
  Transaction transaction(database_);
  Statement results = other.database_.prepare("SELECT key, outcome, answer, wall_s FROM results");
  while (results.step()) {
    const StoredResult theirs{results.text(0), outcome_called(results.text(1)), results.text(2),
                              results.real(3)};
    // A point that one shard could simulate is worth more than that another one could not.
    const std::optional<StoredResult> ours = result(theirs.key);
    if (!ours || ours->outcome != PointOutcome::ok) put_result(theirs);
  }
  Statement points = other.database_.prepare("SELECT number, fields, key, reason FROM points");
  while (points.step())
    put_point(points.integer(0), points.text(1), points.text(2), points.text(3));
  transaction.commit();
}

void SweepStore::for_each_point(const std::function<void(const StoredPoint&)>& visit) {
  Statement query = database_.prepare(
      "SELECT number, fields, reason, points.key, outcome, answer FROM points LEFT JOIN results ON "
      "points.key = results.key ORDER BY number");
  while (query.step()) {
    StoredPoint point{query.integer(0), values_of_text(query.text(1), database_.file())};
    point.outcome = query.text(3).empty() ? PointOutcome::invalid : outcome_called(query.text(4));
    point.answer = query.text(3).empty() ? query.text(2) : query.text(5);
    visit(point);
  }
}

std::int64_t SweepStore::points() {
  Statement query = database_.prepare("SELECT count(*) FROM points");
  query.step();
  return query.integer(0);
}

}  // namespace tessera
