#pragma once

#include <string>
#include <vector>

#include "app/import/imported.h"

namespace tessera {

/// Of a node: larger numbers are mistakes.
constexpr int kMostGpusOfNode = 1024;

/// Fills what no file says about a node: efficiencies, latencies.
void assume_usual_rates(Imported& imported);

/// Number of sockets, from the socket of every GPU; says so where the GPUs are not spread evenly.
void set_sockets(const std::vector<int>& socket_of_gpu, Imported& imported);

/// GPUs per PCIe switch, from the switch of every GPU (-1: none); says so where they are not spread
/// evenly.
void set_pcie_switches(const std::vector<int>& switch_of_gpu, Imported& imported);

/// NICs of equal speed; leaves out what the GPUs cannot share evenly.
void set_nics(int count, BytesPerSecond each, Imported& imported);

/// The result, whose description has to be without contradictions: throws InputError otherwise.
Imported checked(Imported imported, const std::string& name);

/// One problem in a file.
[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& hint);

/// "a, b and 3 more".
std::string listed_briefly(const std::vector<std::string>& names);

}  // namespace tessera
