#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/sweep/database.h"
#include "app/sweep/sweep_grid.h"

namespace tessera {

/// How a point ended.
enum class PointOutcome : std::uint8_t {
  ok,         ///< simulated; that it does not fit into memory is a metric
  invalid,    ///< no scenario: the reason says why
  failed,     ///< the simulation broke off: the reason says how
  timed_out,  ///< the simulation took longer than its limit
};
std::string name_of(PointOutcome outcome);

/// What a simulation answered.
struct StoredResult {
  std::string key;  ///< of the scenario and of what it was simulated with
  PointOutcome outcome = PointOutcome::ok;
  std::string answer;  ///< ok: metrics as a JSON object; failed: why
  double wall_s = 0;   ///< that the simulation took; timed_out: its limit
};

/// A point as the store lists it.
struct StoredPoint {
  std::int64_t number = 0;
  std::vector<std::string> values;  ///< parallel to the columns of the sweep
  PointOutcome outcome = PointOutcome::ok;
  std::string answer;  ///< of the result; of an invalid point the reason
};

/// Which sweep a store belongs to.
struct SweepIdentity {
  std::string name;
  std::vector<std::string> columns;
  std::string fingerprint;  ///< of everything in the sweep's file
};
SweepIdentity identity_of(const SweepSpec& spec);

/// Key of a scenario simulated with `made_with` (version, weights): 32 hexadecimal digits.
std::string scenario_key(const Scenario& scenario, const std::string& made_with);

struct StoredResultRow;
struct StoredPointRow;

/// Results of a sweep in a SQLite file. Each record is whole or absent, at whatever moment the
/// process is killed, and carries a hash of its content. Throws InputError as Database does, for
/// files of other programs, and where a row that is read does not have the content of its hash.
class SweepStore {
 public:
  /// Opens or makes `file`. The results of another sweep are kept, its points are not; damaged
  /// rows are taken out, so that the run makes them anew.
  SweepStore(const std::filesystem::path& file, const SweepIdentity& identity);
  /// Opens an existing store of any sweep; refuses one with a damaged row.
  explicit SweepStore(const std::filesystem::path& file);

  const SweepIdentity& identity() const { return identity_; }
  /// How many damaged rows were taken out when the store was opened.
  std::int64_t discarded() const { return discarded_; }
  std::optional<StoredResult> result(const std::string& key);
  /// A result together with the points that have it.
  void add(const StoredResult& result, const std::vector<SweepPoint>& points);
  /// Points of a result that the store has.
  void add_points(const std::string& key, const std::vector<SweepPoint>& points);
  void add_invalid(const SweepPoint& point, const std::string& reason);
  /// Every result and point of `other`, a store of the same sweep; throws InputError for one of
  /// another. Doing it twice changes nothing.
  void take_over(SweepStore& other);

  /// In order of number.
  void for_each_point(const std::function<void(const StoredPoint&)>& visit);
  std::int64_t points();

 private:
  void check_format();
  /// False where the store does not say, or is damaged there.
  bool read_identity();
  /// How many rows are damaged; the others go into the lists where there are such.
  std::int64_t find_damage(std::vector<StoredResultRow>* results,
                           std::vector<StoredPointRow>* points);
  void discard_damaged_rows();
  [[noreturn]] void refuse_damage(const std::string& row) const;
  void write_identity(const SweepIdentity& identity);
  void put_result(const StoredResult& result);
  void put_point(std::int64_t number, const std::string& values, const std::string& key,
                 const std::string& reason);

  Database database_;
  SweepIdentity identity_;
  std::int64_t discarded_ = 0;
};

}  // namespace tessera
