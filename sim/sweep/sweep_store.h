#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/sweep/database.h"
#include "sim/sweep/sweep_grid.h"

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

/// Results of a sweep in a SQLite file. Each record is whole or absent, at whatever moment the
/// process is killed. Throws InputError as Database does, and for files of other programs.
class SweepStore {
 public:
  /// Opens or makes `file`. The results of another sweep are kept, its points are not.
  SweepStore(const std::filesystem::path& file, const SweepIdentity& identity);
  /// Opens an existing store of any sweep.
  explicit SweepStore(const std::filesystem::path& file);

  const SweepIdentity& identity() const { return identity_; }
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
  void read_identity();
  void write_identity(const SweepIdentity& identity);
  void put_result(const StoredResult& result);
  void put_point(std::int64_t number, const std::string& values, const std::string& key,
                 const std::string& reason);

  Database database_;
  SweepIdentity identity_;
};

}  // namespace tessera
