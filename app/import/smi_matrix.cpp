// Reads the matrix of `nvidia-smi topo -m`: one row and one column per GPU and NIC, then the
// affinities.
#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

#include "app/import/imported.h"
#include "app/import/node_shape.h"
#include "hw/units/text.h"

namespace tessera {
namespace {

/// Cells in order of distance, as the legend below the matrix explains them.
enum class Distance : std::uint8_t { self, nvlink, pix, pxb, phb, node, sys };

struct Cell {
  Distance distance = Distance::sys;
  int nvlinks = 0;
};

struct Row {
  std::string name;
  std::vector<Cell> cells;  ///< in the order of the columns
  std::string affinity;     ///< CPU affinity, as text
  std::string where;
};

struct Matrix {
  std::vector<std::string> columns;  ///< GPUs and NICs
  std::vector<Row> rows;
  int gpus = 0;
};

bool is_gpu(const std::string& name) {
  return name.size() > 3 && name.starts_with("GPU") && name[3] >= '0' && name[3] <= '9';
}

/// Without the escape sequences that underline the heading on a terminal.
std::string plain(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[';
    if (!escape) {
      text += line[i];
      continue;
    }
    while (i < line.size() && line[i] != 'm') ++i;
  }
  return text;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Cell cell_of(const std::string& word, const std::string& where) {
  static const std::map<std::string, Distance> kWords{
      {"X", Distance::self},  {"PIX", Distance::pix},   {"PXB", Distance::pxb},
      {"PHB", Distance::phb}, {"NODE", Distance::node}, {"SYS", Distance::sys},
      {"SOC", Distance::sys}};
  const auto found = kWords.find(word);
  if (found != kWords.end()) return {found->second, 0};
  int links = 0;
  const char* end = word.data() + word.size();
  const bool nvlink = word.starts_with("NV");
  constexpr int kMostBonded = 1000;
  const auto [rest, failure] = std::from_chars(word.data() + (nvlink ? 2 : 0), end, links);
  if (!nvlink || failure != std::errc() || rest != end || links < 1 || links > kMostBonded) {
    refuse(where, "cell \"" + word + "\" is none of X, NV#, PIX, PXB, PHB, NODE, SYS",
           "give the output of nvidia-smi topo -m as it is");
  }
  return {Distance::nvlink, links};
}

class SmiMatrixReader {
 public:
  SmiMatrixReader(const std::string& text, const std::string& name) : name_(name) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      ++line_;
      read_line(cells_of(plain(line)));
      if (done_) break;
    }
    check();
  }

  Matrix matrix;

 private:
  std::string where() const { return name_ + ":" + std::to_string(line_); }

  void read_line(const std::vector<std::string>& words) {
    if (matrix.columns.empty()) return read_heading(words);
    const bool is_row = !words.empty() && words[0] == next_name();
    if (is_row) return read_row(words);
    done_ = !words.empty() || !matrix.rows.empty();
  }

  std::string next_name() const {
    const std::size_t row = matrix.rows.size();
    return row < matrix.columns.size() ? matrix.columns[row] : "";
  }

  void read_heading(const std::vector<std::string>& words) {
    if (words.empty() || !is_gpu(words[0])) return;
    for (const std::string& word : words) {
      if (word == "CPU" || word == "NUMA") break;
      if (is_gpu(word) && matrix.gpus < static_cast<int>(matrix.columns.size())) {
        refuse(where(), "column " + word + " follows a NIC", "list the GPUs first");
      }
      matrix.gpus += is_gpu(word) ? 1 : 0;
      matrix.columns.push_back(word);
    }
    if (matrix.gpus > kMostGpusOfNode) refuse(where(), "has too many GPUs", "use up to 1024");
  }

  void read_row(const std::vector<std::string>& words) {
    Row row;
    row.name = words[0];
    row.where = where();
    if (words.size() < 1 + matrix.columns.size()) {
      refuse(row.where,
             row.name + " has " + std::to_string(words.size() - 1) + " cells for " +
                 std::to_string(matrix.columns.size()) + " columns",
             "give the output of nvidia-smi topo -m as it is");
    }
    for (std::size_t i = 0; i < matrix.columns.size(); ++i) {
      row.cells.push_back(cell_of(words[1 + i], row.where));
    }
    const std::size_t affinity = 1 + matrix.columns.size();
    if (words.size() > affinity) row.affinity = words[affinity];
    matrix.rows.push_back(std::move(row));
  }

  void check() const {
    if (matrix.gpus == 0) {
      refuse(name_, "has no heading with GPU0", "give the output of nvidia-smi topo -m");
    }
    if (static_cast<int>(matrix.rows.size()) < matrix.gpus) {
      refuse(name_,
             "has " + std::to_string(matrix.rows.size()) + " rows for " +
                 std::to_string(matrix.gpus) + " GPUs",
             "give all rows");
    }
    for (int a = 0; a < matrix.gpus; ++a) {
      for (int b = 0; b < matrix.gpus; ++b) check_pair(a, b);
    }
  }

  void check_pair(int a, int b) const {
    const Row& row = matrix.rows[static_cast<std::size_t>(a)];
    const Cell& there = row.cells[static_cast<std::size_t>(b)];
    const Cell& back = matrix.rows[static_cast<std::size_t>(b)].cells[static_cast<std::size_t>(a)];
    const bool self = there.distance == Distance::self;
    if (self != (a == b) || there.distance != back.distance || there.nvlinks != back.nvlinks) {
      refuse(row.where,
             "GPU" + std::to_string(a) + " and GPU" + std::to_string(b) + " contradict each other",
             "the matrix is symmetric, with X on its diagonal");
    }
  }

  std::string name_;
  int line_ = 0;
  bool done_ = false;
};

void set_nvlinks(const Matrix& matrix, Imported& imported) {
  NodeSpec& node = imported.cluster.node;
  std::vector<GpuPairLink> pairs;
  bool all_full = matrix.gpus > 2;
  for (int a = 0; a < matrix.gpus; ++a) {
    for (int b = a + 1; b < matrix.gpus; ++b) {
      const int links =
          matrix.rows[static_cast<std::size_t>(a)].cells[static_cast<std::size_t>(b)].nvlinks;
      if (links > 0) pairs.push_back({a, b, links});
      all_full = all_full && links > 0 && links == pairs.front().links;
    }
  }
  if (pairs.empty()) return;
  // As many links to every peer as the GPU has in all: they meet at a switch.
  const bool budget_is_exceeded =
      all_full && pairs.front().links * (matrix.gpus - 1) > node.gpu.nvlink_links;
  node.interconnect = budget_is_exceeded ? GpuInterconnect::nvswitch : GpuInterconnect::direct;
  if (!budget_is_exceeded) {
    node.pairs = pairs;
  } else if (pairs.front().links != node.gpu.nvlink_links) {
    imported.ignored.push_back("NV" + std::to_string(pairs.front().links) + ": all " +
                               std::to_string(node.gpu.nvlink_links) + " NVLinks of " +
                               node.gpu.id + " go to the switch");
  }
}

/// Sockets by the CPU affinity; without one, by what SYS separates.
std::vector<int> sockets_of(const Matrix& matrix, Imported& imported) {
  std::vector<int> sockets;
  std::map<std::string, int> by_affinity;
  bool separated = false;
  for (int a = 0; a < matrix.gpus; ++a) {
    const Row& row = matrix.rows[static_cast<std::size_t>(a)];
    sockets.push_back(
        by_affinity.try_emplace(row.affinity, static_cast<int>(by_affinity.size())).first->second);
    separated = separated || std::ranges::any_of(row.cells, [](const Cell& cell) {
                  return cell.distance == Distance::sys;
                });
  }
  if (by_affinity.size() > 1 || !separated) return sockets;
  imported.assumed.push_back("two sockets: some pairs are SYS, and no affinities tell them apart");
  for (int gpu = 0; gpu < matrix.gpus; ++gpu) {
    sockets[static_cast<std::size_t>(gpu)] = 2 * gpu / matrix.gpus;
  }
  return sockets;
}

/// A number for every group of GPUs that meet at a PCIe switch, or share one with a NIC.
std::vector<int> switches_of(const Matrix& matrix) {
  std::vector<int> group(static_cast<std::size_t>(matrix.gpus), -1);
  const auto is_near = [](const Cell& cell) {
    return cell.distance == Distance::pix || cell.distance == Distance::pxb;
  };
  const auto shares = [&](int a, int b) {
    const std::vector<Cell>& first = matrix.rows[static_cast<std::size_t>(a)].cells;
    const std::vector<Cell>& second = matrix.rows[static_cast<std::size_t>(b)].cells;
    if (is_near(first[static_cast<std::size_t>(b)])) return true;
    for (std::size_t nic = static_cast<std::size_t>(matrix.gpus); nic < first.size(); ++nic) {
      if (is_near(first[nic]) && is_near(second[nic])) return true;
    }
    return false;
  };
  int groups = 0;
  for (int a = 0; a < matrix.gpus; ++a) {
    int& own = group[static_cast<std::size_t>(a)];
    for (int b = 0; b < a && own < 0; ++b) {
      if (shares(a, b)) own = group[static_cast<std::size_t>(b)];
    }
    if (own < 0) own = groups++;
  }
  return group;
}

/// What servers with such GPUs usually have: 100, 200 or 400 Gb/s.
BytesPerSecond usual_nic(const GpuSpec& gpu) {
  if (gpu.architecture < Architecture::ampere) return 12.5_GBps;
  return gpu.architecture < Architecture::hopper ? 25_GBps : 50_GBps;
}

}  // namespace

Imported import_smi_matrix(const std::string& text, const std::string& name,
                           const ImportOptions& options, const GpuFinder& find_gpu) {
  const Matrix matrix = SmiMatrixReader(text, name).matrix;
  if (options.gpu.empty()) {
    refuse(name, "does not say which GPUs these are",
           "name them with --gpu, for instance " + std::string("--gpu H100-SXM5-80GB"));
  }
  Imported imported;
  NodeSpec& node = imported.cluster.node;
  imported.gpu = options.gpu;
  imported.cluster.id = node.id = "imported-smi";
  node.gpu = find_gpu(options.gpu);
  node.gpu_count = matrix.gpus;
  set_nvlinks(matrix, imported);
  set_sockets(sockets_of(matrix, imported), imported);
  set_pcie_switches(switches_of(matrix), imported);
  if (node.sockets > 1) {
    node.socket_bandwidth = 10_GBps;
    imported.assumed.push_back("10 GB/s between sockets (NCCL's budget for Skylake)");
  }
  const int nics = static_cast<int>(matrix.columns.size()) - matrix.gpus;
  if (nics > 0) {
    const bool given = options.nic_bandwidth.value() > 0;
    set_nics(nics, given ? options.nic_bandwidth : usual_nic(node.gpu), imported);
    if (!given) {
      imported.assumed.push_back(to_text(usual_nic(node.gpu)) +
                                 " per NIC, usual beside such GPUs; --nic-bandwidth sets it");
    }
    imported.ignored.push_back("which GPU each NIC is near: they are spread evenly, in order");
  }
  assume_usual_rates(imported);
  return checked(std::move(imported), name);
}

}  // namespace tessera
