#include "sim/formats/perfetto.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "hw/units/formatted.h"
#include "sim/formats/output_file.h"
#include "sim/formats/perfetto_proto_writer.h"
#include "sim/formats/trace_event_writer.h"
#include "sim/report/analysis/critical_path.h"
#include "sim/report/analysis/link_use.h"
#include "sim/report/palette.h"
#include "sim/trace/timeline_index.h"
#include "workloads/program/labels.h"

namespace tessera {
namespace {

constexpr int kLinkParts = 400;
constexpr std::size_t kCountedLinks = 64;
constexpr std::size_t kMostLinkOps = 4'000'000;

/// JSON of one kernel, the same in every run of its segment.
struct KernelText {
  std::string name;  ///< quoted
  std::string args;  ///< members of the args object, with a comma before each
};

struct SegmentText {
  std::string name;  ///< quoted
  std::string args;
  std::vector<KernelText> kernels;
};

std::string member(std::string_view key, std::string_view json) {
  return ",\"" + std::string(key) + "\":" + std::string(json);
}

std::string member(std::string_view key, std::int64_t value) {
  return member(key, std::to_string(value));
}

/// Labels hold nothing that JSON would escape.
std::string label_json(std::string_view label) {
  return '"' + std::string(label) + '"';
}

std::int64_t whole_flops(Flops flops) {
  return static_cast<std::int64_t>(flops.value());
}

/// "67.5": how much of the roofline's speed a kernel reaches; empty where that is not known.
std::string roofline_percent(const TimedProgram& timed, const TimedSegment& times, std::size_t k) {
  if (k >= times.kernels.size() || times.kernels[k] >= timed.kernels.size()) return "";
  const double share = timed.kernels[times.kernels[k]].prediction.utilization;
  if (share <= 0) return "";
  return formatted("%.1f", 100 * share);
}

KernelText kernel_text(const KernelLaunch& launch, const std::string& roofline) {
  const Kernel& kernel = launch.kernel;
  return {json_string(launch.name),
          member("kind", label_json(label_of(kernel.kind))) +
              member("precision", label_json(name_of(kernel.precision))) +
              member("flops", whole_flops(kernel.flops)) + member("bytes", kernel.bytes().value()) +
              (roofline.empty() ? "" : member("roofline_percent", roofline))};
}

SegmentText segment_text(const Segment& segment, const TimedProgram& timed,
                         const TimedSegment& times) {
  SegmentText text{.name = json_string(segment.name), .args = {}, .kernels = {}};
  Flops flops;
  Bytes bytes;
  for (const KernelLaunch& launch : segment.kernels) {
    text.kernels.push_back(
        kernel_text(launch, roofline_percent(timed, times, text.kernels.size())));
    flops += launch.kernel.flops;
    bytes += launch.kernel.bytes();
  }
  text.args = member("flops", whole_flops(flops)) + member("bytes", bytes.value());
  return text;
}

/// What an op has in common with its kernels: members of their args objects.
std::string op_args(const ProgramOp& op) {
  std::string args = "\"phase\":" + label_json(label_of(op.phase));
  args += member("class", label_json(label_of(class_of(op))));
  if (op.layer >= 0) args += member("layer", op.layer);
  if (op.micro_batch >= 0) args += member("micro_batch", op.micro_batch);
  return args;
}

/// What chrome://tracing calls the colour of an op; other viewers choose their own and have the
/// class and colour as arguments.
std::string_view colour_of(const ProgramOp& op) {
  return look_of(class_of(op)).viewer_name;
}

std::string communication_name(const ProgramOp& op) {
  if (op.kind == OpKind::send) return "send to stage " + std::to_string(op.peer_stage);
  if (op.kind == OpKind::recv) return "recv from stage " + std::to_string(op.peer_stage);
  if (is_copy(op.kind)) return std::string(label_of(op.kind));
  return std::string(label_of(op.kind)) + " " + std::string(label_of(op.group));
}

/// Processes and threads are numbered from 1: viewers file process 0 as the idle task.
TraceTrack track_of(int rank, StreamKind stream) {
  return {rank + 1, static_cast<int>(stream) + 1};
}

/// Writes the events of a timeline, rank by rank.
class PerfettoTrace {
 public:
  PerfettoTrace(const TimedProgram& timed, const Timeline& timeline, TraceWriter& writer)
      : timed_(timed), timeline_(timeline), index_(timed, timeline), writer_(writer) {
    for (std::size_t i = 0; i < timed.program.segments.size(); ++i)
      segments_.push_back(segment_text(timed.program.segments[i], timed, timed.segments[i]));
  }

  std::string write(TraceContent content) {
    write_events();
    if (content == TraceContent::findings) {
      write_links(index_.ranks() + 1);
      write_critical_path(index_.ranks() + 2);
    }
    return writer_.finish();
  }

 private:
  void write_events() {
    for (const auto& [rank, stands_for] : index_.simulated()) {
      name_tracks(rank, stands_for);
      for (const OpRecord& record : index_.records_of(rank)) write_op(rank, record);
      write_memory(rank);
    }
    for (const PressureCopy& copy : timeline_.pressure_copies) write_pressure(copy);
    for (const PressureRerun& rerun : timeline_.pressure_reruns) write_rerun(rerun);
  }

  const ProgramOp& op_of(int rank, const OpRecord& record) const {
    return index_.program_of(rank).ops[static_cast<std::size_t>(record.op)];
  }

  void name_tracks(int rank, int stands_for) {
    const RankPosition at = index_.position(rank);
    const std::string name =
        "GPU " + std::to_string(rank) + " (" + timed_.topology.cluster().node.gpu.id + ", stage " +
        std::to_string(at.pipeline) + ", tensor " + std::to_string(at.tensor) + ", data " +
        std::to_string(at.data) +
        (stands_for > 1 ? ", for " + std::to_string(stands_for) + " GPUs)" : ")");
    writer_.name_process(rank + 1, json_string(name));
    std::array<bool, kStreamCount> named{};
    for (const ProgramOp& op : index_.program_of(rank).ops) {
      if (std::exchange(named[static_cast<std::size_t>(op.stream)], true)) continue;
      const TraceTrack track = track_of(rank, op.stream);
      writer_.name_thread(track, label_json(label_of(op.stream)));
    }
  }

  void write_op(int rank, const OpRecord& record) {
    const ProgramOp& op = op_of(rank, record);
    if (op.kind == OpKind::kernels) return write_segment(rank, record, op);
    write_communication(rank, record, op);
    if (op.kind == OpKind::recv) write_arrow(rank, record, op);
  }

  void write_segment(int rank, const OpRecord& record, const ProgramOp& op) {
    const auto segment = static_cast<std::size_t>(op.segment.index());
    const SegmentText& text = segments_[segment];
    const TraceTrack track = track_of(rank, op.stream);
    const std::string common = op_args(op);
    writer_.slice(track, text.name, "segment", colour_of(op), to_nanoseconds(record.start),
                  to_nanoseconds(record.end),
                  common + member("colour", label_json(look_of(class_of(op)).colour)), text.args);
    write_kernels(rank, record, track, common, segment);
  }

  /// Kernel boundaries are prefix sums of the predicted durations, stretched to the record.
  void write_kernels(int rank, const OpRecord& record, TraceTrack track, const std::string& common,
                     std::size_t segment) {
    const SegmentId id(static_cast<std::int32_t>(segment));
    const std::string_view colour = colour_of(op_of(rank, record));
    const TimedSegment& times = timed_.segment_of(rank, id);
    const double sum = times.duration.value();
    const double stretch = sum > 0 ? (record.end - record.start).value() / sum : 0.0;
    Seconds elapsed;
    Nanoseconds begin = to_nanoseconds(record.start);
    const Nanoseconds last_end = to_nanoseconds(record.end);
    for (std::size_t k = 0; k < times.kernel_durations.size(); ++k) {
      const KernelText& kernel = segments_[segment].kernels[k];
      elapsed += times.kernel_durations[k];
      const Nanoseconds end = std::min(to_nanoseconds(record.start + elapsed * stretch), last_end);
      writer_.slice(track, kernel.name, "kernel", colour, begin, end, common, kernel.args);
      begin = end;
    }
  }

  void write_communication(int rank, const OpRecord& record, const ProgramOp& op) {
    const Nanoseconds begin = to_nanoseconds(record.start);
    const Nanoseconds waited = to_nanoseconds(record.transfer_start) - begin;
    std::string args = member("bytes", op.bytes.value());
    args += is_collective(op.kind)
                ? member("group", label_json(label_of(op.group))) + member("waited_ns", waited)
                : member("tag", op.tag);
    args += member("colour", label_json(look_of(class_of(op)).colour));
    writer_.slice(track_of(rank, op.stream), json_string(communication_name(op)), "communication",
                  colour_of(op), begin, to_nanoseconds(record.end), op_args(op), args);
  }

  /// Ends one tick before the message has arrived, which lies inside the slice of the recv.
  void write_arrow(int rank, const OpRecord& recv, const ProgramOp& op) {
    const auto send = index_.send_of(rank, op);
    if (!send) return;
    const Nanoseconds sent = to_nanoseconds(send->record.start);
    const Nanoseconds posted = to_nanoseconds(recv.start);
    const Nanoseconds arrived = std::max({sent, posted, to_nanoseconds(recv.end) - 1});
    writer_.arrow(++arrows_, track_of(send->rank, op_of(send->rank, send->record).stream), sent,
                  track_of(rank, op.stream), arrived);
  }

  /// On tracks of their own, behind those of the streams.
  void write_pressure(const PressureCopy& copy) {
    const TraceTrack track{copy.rank + 1, kStreamCount + (copy.out ? 1 : 2)};
    const char* name = copy.out ? "memory pressure, out" : "memory pressure, in";
    if (pressure_tracks_.insert({copy.rank, copy.out}).second)
      writer_.name_thread(track, label_json(name));
    writer_.slice(track, label_json(name), "communication",
                  look_of(TimeCategory::exposed_swap).viewer_name, to_nanoseconds(copy.start),
                  to_nanoseconds(copy.end), "\"pressure\":true",
                  member("bytes", copy.bytes.value()));
  }

  void write_rerun(const PressureRerun& rerun) {
    const TraceTrack track{rerun.rank + 1, kStreamCount + 3};
    if (rerun_tracks_.insert(rerun.rank).second)
      writer_.name_thread(track, label_json("memory pressure, run again"));
    const ProgramOp& op = index_.program_of(rerun.rank).ops[static_cast<std::size_t>(rerun.op)];
    writer_.slice(track, label_json(timed_.program.segment(op.segment).name), "segment",
                  colour_of(op), to_nanoseconds(rerun.start), to_nanoseconds(rerun.end),
                  "\"pressure\":true", member("bytes", rerun.bytes.value()));
  }

  void write_memory(int rank) {
    const auto samples = index_.memory_of(rank);
    if (samples.empty() || samples.front().time > Seconds()) {
      writer_.memory_counter(rank + 1, 0, index_.program_of(rank).static_memory);
    }
    for (const MemorySample& sample : samples) {
      writer_.memory_counter(rank + 1, to_nanoseconds(sample.time), sample.used);
    }
  }

  /// A counter for each of the busiest links, by parts of the step.
  void write_links(int process) {
    if (index_.step_time() <= Seconds() || !is_worth_links()) return;
    LinkUse use = link_use(timed_, index_, kLinkParts);
    if (use.links.empty()) return;
    std::ranges::stable_sort(use.links, std::ranges::greater(), [&](const LinkTraffic& traffic) {
      return std::accumulate(traffic.bytes.begin(), traffic.bytes.end(), 0.0) /
             timed_.topology.link(traffic.link).bandwidth.value();
    });
    writer_.name_process(process, label_json("links, MB/s of payload"));
    for (std::size_t i = 0; i < std::min(use.links.size(), kCountedLinks); ++i)
      write_link(process, static_cast<int>(i) + 1, use.links[i], use.part);
  }

  /// Adding up what links carried visits every op of every rank.
  bool is_worth_links() const {
    std::size_t ops = 0;
    for (int rank = 0; rank < index_.ranks(); ++rank) ops += index_.program_of(rank).ops.size();
    return ops <= kMostLinkOps;
  }

  void write_link(int process, int number, const LinkTraffic& traffic, Seconds part) {
    const std::string name = json_string(timed_.topology.link(traffic.link).name + " [MB/s]");
    std::int64_t before = -1;
    for (std::size_t i = 0; i <= traffic.bytes.size(); ++i) {
      const double bytes = i < traffic.bytes.size() ? traffic.bytes[i] : 0;
      const auto rate = static_cast<std::int64_t>(bytes / part.value() * 1e-6);
      if (std::exchange(before, rate) == rate) continue;
      writer_.counter(process, number, name, "MB/s", to_nanoseconds(part * static_cast<double>(i)),
                      rate);
    }
  }

  /// What released what, from the start of the step to its end, on a track of its own.
  void write_critical_path(int process) {
    const std::vector<PathPiece> path = critical_path(timed_, timeline_, index_);
    if (path.empty()) return;
    const TraceTrack track{process, 1};
    writer_.name_process(process, label_json("critical path"));
    writer_.name_thread(track, label_json("what made the step as long as it is"));
    for (const PathPiece& piece : path) {
      const ProgramOp& op =
          index_.program_of(piece.rank).ops[static_cast<std::size_t>(std::max(piece.op, 0))];
      const bool ran = piece.kind <= PathPieceKind::copy;
      writer_.slice(track, path_name(piece, op), "critical path",
                    ran ? colour_of(op) : look_of(TimeCategory::host).viewer_name,
                    to_nanoseconds(piece.begin), to_nanoseconds(piece.end),
                    "\"rank\":" + std::to_string(piece.rank), ran ? "," + op_args(op) : "");
    }
  }

  std::string path_name(const PathPiece& piece, const ProgramOp& op) const {
    switch (piece.kind) {
      case PathPieceKind::kernels:
        return segments_[static_cast<std::size_t>(op.segment.index())].name;
      case PathPieceKind::memory:
        return label_json("waits for memory");
      case PathPieceKind::host:
        return label_json("launches of the host");
      case PathPieceKind::unexplained:
        return label_json("not explained");
      default:
        return json_string(communication_name(op));
    }
  }

  const TimedProgram& timed_;
  const Timeline& timeline_;
  TimelineIndex index_;
  std::vector<SegmentText> segments_;  // parallel to Program::segments
  TraceWriter& writer_;
  std::int64_t arrows_ = 0;
  std::set<std::pair<int, bool>> pressure_tracks_;  ///< that are named
  std::set<int> rerun_tracks_;                      ///< likewise, by rank
};

}  // namespace

std::string perfetto_trace(const TimedProgram& timed, const Timeline& timeline, TraceFormat format,
                           TraceContent content) {
  TraceEventWriter json;
  PerfettoProtoWriter native;
  TraceWriter& writer = format == TraceFormat::native ? static_cast<TraceWriter&>(native) : json;
  return PerfettoTrace(timed, timeline, writer).write(content);
}

TraceFormat trace_format_of(const std::filesystem::path& path) {
  const bool is_packed = path.extension() == ".gz";
  const std::string kind = (is_packed ? path.stem() : path.filename()).extension().string();
  const bool is_native = kind == ".pftrace" || kind == ".perfetto-trace";
  return is_native ? TraceFormat::native : TraceFormat::json;
}

void write_perfetto_trace(const std::filesystem::path& path, const TimedProgram& timed,
                          const Timeline& timeline) {
  write_output_file(path,
                    perfetto_trace(timed, timeline, trace_format_of(path), TraceContent::findings));
}

}  // namespace tessera
