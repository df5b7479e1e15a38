#include "app/sweep/sweep_store.h"

#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "app/sweep/axis_values.h"
#include "app/sweep/content_hash.h"
#include "app/sweep/store_rows.h"
#include "hw/units/input_error.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr std::int64_t kStoreFormat = 2;
constexpr std::int64_t kApplicationId = 0x54455353;  // "TESS"

std::string values_text(const std::vector<std::string>& values) {
  return json(values).dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Throws json::exception where `text` is no list of texts.
std::vector<std::string> values_of_text(const std::string& text) {
  return json::parse(text).get<std::vector<std::string>>();
}

std::string hash_of(const SweepIdentity& identity) {
  ContentHash content;
  content.add(identity.name).add(values_text(identity.columns)).add(identity.fingerprint);
  return content.hexadecimal();
}

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

const std::string kSelectResults =
    std::string("SELECT ") + StoredResultRow::kColumns + " FROM results";
const std::string kSelectPoints =
    std::string("SELECT ") + StoredPointRow::kColumns + " FROM points";

void add_expressions(ContentHash& hash, const std::vector<Expression>& expressions) {
  for (const Expression& expression : expressions) hash.add(expression.text());
}

}  // namespace

SweepIdentity identity_of(const SweepSpec& spec) {
  ContentHash hash;
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
  ContentHash hash;
  hash.add(made_with);
  hash.add(identifying_bytes(scenario));
  return hash.hexadecimal();
}

SweepStore::SweepStore(const std::filesystem::path& file, const SweepIdentity& identity)
    : database_(file) {
  check_format();
  if (!read_identity() || identity_.fingerprint != identity.fingerprint) write_identity(identity);
  discard_damaged_rows();
}

SweepStore::SweepStore(const std::filesystem::path& file)
    : database_(is_there(file) ? file
                               : throw InputError(Problem{file.string(), "there is no such store",
                                                          "name the folder of a sweep"})) {
  check_format();
  if (!read_identity() || find_damage(nullptr, nullptr) > 0) refuse_damage("");
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
      "wall_s REAL NOT NULL, hash TEXT NOT NULL) WITHOUT ROWID");
  database_.run(
      "CREATE TABLE points(number INTEGER PRIMARY KEY, fields TEXT NOT NULL, key TEXT NOT NULL, "
      "reason TEXT NOT NULL, hash TEXT NOT NULL)");
  transaction.commit();
}

bool SweepStore::read_identity() {
  Statement query = database_.prepare("SELECT name, value FROM meta");
  std::map<std::string, std::string> meta;
  while (query.step()) meta[query.text(0)] = query.text(1);
  try {
    identity_ = {meta["sweep"], values_of_text(meta["columns"]), meta["fingerprint"]};
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return meta["hash"] == hash_of(identity_);
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
  put("hash", hash_of(identity));
  transaction.commit();
  identity_ = identity;
}

std::int64_t SweepStore::find_damage(std::vector<StoredResultRow>* results,
                                     std::vector<StoredPointRow>* points) {
  std::int64_t damaged = 0;
  std::set<std::string> keys;
  Statement all_results = database_.prepare(kSelectResults);
  while (all_results.step()) {
    StoredResultRow row = StoredResultRow::at(all_results, 0);
    const bool sound = row.sound() && keys.insert(row.result.key).second;
    damaged += !sound;
    if (sound && results != nullptr) results->push_back(std::move(row));
  }
  Statement all_points = database_.prepare(kSelectPoints);
  while (all_points.step()) {
    StoredPointRow row = StoredPointRow::at(all_points);
    const bool sound = row.sound() && (row.key.empty() || keys.contains(row.key));
    damaged += !sound;
    if (sound && points != nullptr) points->push_back(std::move(row));
  }
  return damaged;
}

/// Damaged keys do not stand where a search for them looks: the tables are written anew.
void SweepStore::discard_damaged_rows() {
  discarded_ = find_damage(nullptr, nullptr);
  if (discarded_ == 0) return;
  std::vector<StoredResultRow> results;
  std::vector<StoredPointRow> points;
  find_damage(&results, &points);
  Transaction transaction(database_);
  database_.run("DELETE FROM points");
  database_.run("DELETE FROM results");
  for (const StoredResultRow& row : results) put_result(row.result);
  for (const StoredPointRow& row : points) put_point(row.number, row.fields, row.key, row.reason);
  transaction.commit();
}

void SweepStore::refuse_damage(const std::string& row) const {
  throw InputError(Problem{database_.file().string(),
                           "is damaged" + (row.empty() ? "" : ": " + row) +
                               "; a row does not have the content that was written",
                           "run the sweep again with --resume: damaged rows are made anew"});
}

std::optional<StoredResult> SweepStore::result(const std::string& key) {
  Statement query = database_.prepare(kSelectResults + " WHERE key = ?");
  if (!query.bind(1, key).step()) return std::nullopt;
  const StoredResultRow row = StoredResultRow::at(query, 0);
  if (!row.sound() || row.result.key != key) return std::nullopt;
  return row.result;
}

void SweepStore::put_result(const StoredResult& result) {
  const std::string outcome = name_of(result.outcome);
  database_.prepare("INSERT OR REPLACE INTO results VALUES(?, ?, ?, ?, ?)")
      .bind(1, result.key)
      .bind(2, outcome)
      .bind(3, result.answer)
      .bind(4, result.wall_s)
      .bind(5, StoredResultRow{result, outcome, ""}.right_hash())
      .run();
}

void SweepStore::put_point(std::int64_t number, const std::string& values, const std::string& key,
                           const std::string& reason) {
  database_.prepare("INSERT OR REPLACE INTO points VALUES(?, ?, ?, ?, ?)")
      .bind(1, number)
      .bind(2, values)
      .bind(3, key)
      .bind(4, reason)
      .bind(5, StoredPointRow{number, values, key, reason, ""}.right_hash())
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
  Statement results = other.database_.prepare(kSelectResults);
  while (results.step()) {
    const StoredResultRow row = StoredResultRow::at(results, 0);
    if (!row.sound()) other.refuse_damage("result " + row.result.key);
    // A point that one shard could simulate is worth more than that another one could not.
    const std::optional<StoredResult> ours = result(row.result.key);
    if (!ours || ours->outcome != PointOutcome::ok) put_result(row.result);
  }
  Statement points = other.database_.prepare(kSelectPoints);
  while (points.step()) {
    const StoredPointRow row = StoredPointRow::at(points);
    if (!row.sound()) other.refuse_damage("point " + std::to_string(row.number));
    put_point(row.number, row.fields, row.key, row.reason);
  }
  transaction.commit();
}

void SweepStore::for_each_point(const std::function<void(const StoredPoint&)>& visit) {
  Statement query = database_.prepare(
      std::string("SELECT ") + StoredPointRow::kColumns + ", " + StoredResultRow::kColumns +
      " FROM points LEFT JOIN results ON points.key = results.key ORDER BY number");
  while (query.step()) {
    const StoredPointRow row = StoredPointRow::at(query);
    const bool invalid = row.key.empty();
    const StoredResultRow result = invalid ? StoredResultRow() : StoredResultRow::at(query, 5);
    if (!row.sound() || (!invalid && !(result.sound() && result.result.key == row.key)))
      refuse_damage("point " + std::to_string(row.number));
    visit({row.number, values_of_text(row.fields),
           invalid ? PointOutcome::invalid : result.result.outcome,
           invalid ? row.reason : result.result.answer});
  }
}

std::int64_t SweepStore::points() {
  Statement query = database_.prepare("SELECT count(*) FROM points");
  query.step();
  return query.integer(0);
}

}  // namespace tessera
