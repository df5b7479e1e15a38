#include "sim/engine/network/link_paths.h"

#include <algorithm>

namespace tessera {
namespace {

std::vector<BytesPerSecond> bandwidths_of(std::span<const Link> links) {
  std::vector<BytesPerSecond> bandwidths;
  for (const Link& link : links) bandwidths.push_back(link.bandwidth);
  return bandwidths;
}

std::vector<BytesPerSecond> rates_of(const std::vector<std::vector<LinkId>>& paths,
                                     std::span<const Link> links) {
  std::vector<BytesPerSecond> rates;
  std::vector<double> times_named(links.size());  // by link, on the path at hand
  for (const std::vector<LinkId>& path : paths) {
    for (const LinkId id : path) ++times_named[static_cast<std::size_t>(id.index())];
    BytesPerSecond rate = LinkPaths::kNoLimit;
    for (const LinkId id : path) {
      const auto i = static_cast<std::size_t>(id.index());
      rate = std::min(rate, links[i].bandwidth / times_named[i]);
    }
    for (const LinkId id : path) times_named[static_cast<std::size_t>(id.index())] = 0;
    rates.push_back(rate);
  }
  return rates;
}

}  // namespace

LinkPaths::LinkPaths(std::span<const Link> links, const std::vector<std::vector<LinkId>>& paths,
                     const std::vector<bool>& has_limit)
    : all_links_(links),
      bandwidths_(bandwidths_of(links)),
      links_(paths),
      rates_(rates_of(paths, links)),
      has_limit_(has_limit) {
  has_limit_.resize(paths.size());
}

}  // namespace tessera
