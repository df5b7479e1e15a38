#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/reliability/micros.h"

namespace tessera {

/// What breaks.
enum class Component : std::uint8_t { gpu, hbm, nic, link, network_switch, host, power, software };
inline constexpr std::array kAllComponents = {
    Component::gpu,
    Component::hbm,
    Component::nic,
    Component::link,
    Component::network_switch,
    Component::host,
    Component::power,
    Component::software,
};

/// "gpu", ..., "switch", ...
std::string_view name_of(Component component);
/// Reverse of `name_of`. Throws InputError (with an empty `where`) naming the accepted words.
Component parse_component(std::string_view name);

/// One way in which a cluster fails, of every node alike.
struct FailureClass {
  std::string name;  ///< the cause, as results show it
  Component component = Component::host;
  double per_node_day = 0;  ///< mean number of events over nodes and days of 24 h
  /// Of the Weibull distribution of the times between two events of a node: 1 exponential, below 1
  /// infants die most, above 1 parts wear out. In [0.2, 20].
  double shape = 1;
  int takes_nodes = 1;  ///< neighbouring nodes that one event takes, as a switch does
  Seconds repair;       ///< mean time out of service, exponential; 0: a restart is enough
  Seconds detection;    ///< from the event until the job is stopped
  std::optional<Seconds> restart;  ///< where it differs from the run's
  /// Above 1: the job does not stop, its steps take so many times as long, until the event is found
  /// after `detection`. Then the node is taken out as if it had failed; without a `repair` the
  /// event passes by itself.
  double slowdown = 1;
  /// Slow, and found: the job does not stop for it; it is taken out with the next stop.
  bool stays = false;
  /// Above 0: nobody notices for so long, and all that was computed since is wrong, checkpoints
  /// included (silent data corruption). Then the job stops and goes back to before.
  Seconds found_after;
  /// Settings of the scenario in that state ("perturbation.gpus=[...]"), from whose simulated step
  /// `slowdown` is taken; empty: it is as stated.
  std::vector<std::string> state;
  bool announced = false;  ///< planned, or with enough notice: a checkpoint is written before the
                           ///< job stops
  std::string source;      ///< where the figures come from

  bool is_silent() const { return found_after.value() > 0; }
  bool is_slow() const { return slowdown > 1 || !state.empty(); }
};

/// Failures of a cluster.
struct FailureModel {
  std::string name;
  std::vector<FailureClass> classes;

  /// Mean events a day that stop a job of `nodes`; of whole groups where one takes several nodes.
  double stops_per_day(int nodes) const;
};

/// A failure of a record: node `node` is out from `begin` to `end`.
struct RecordedFault {
  int node = 0;
  std::string cause;
  Micros begin, end;
};

}  // namespace tessera
