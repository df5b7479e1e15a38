#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "app/search/layout_space.h"

namespace tessera {

/// A space small enough to simulate all of it.
struct SmallSpace {
  std::string settings;
  LayoutSpace space;
};

inline void PrintTo(const SmallSpace& small, std::ostream* out) {
  *out << small.settings;
}

/// Of all kinds of layouts: pipelines, shards, experts, contexts, plans, and several frameworks.
std::vector<SmallSpace> small_spaces();

}  // namespace tessera
