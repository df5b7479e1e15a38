#pragma once

#include <map>
#include <string>
#include <vector>

namespace tessera {

/// USD per GPU and hour, by the id of the GPU.
using PriceList = std::map<std::string, double>;

/// Of words like "H100-SXM5-80GB=2.5". Throws InputError naming --price for anything else, for
/// what is no amount above 0, and for a GPU with two prices.
PriceList parsed_prices(const std::vector<std::string>& words);

/// Throws InputError for a price of a GPU that is none of `gpus`: it would change nothing.
void check_used(const PriceList& prices, const std::vector<std::string>& gpus);

}  // namespace tessera
