#pragma once

#include <optional>
#include <string>

#include "hw/gpu.h"
#include "hw/units/precision.h"

namespace tessera {

/// FP32 lanes of one of NVIDIA's SMs: 64 (GP100, Volta, Turing, GA100) or 128; 0 for other vendors.
int lanes_of_sm(const GpuSpec& gpu);

/// Exponentials (MUFU.EX2) per clock of one SM, of all generations but Blackwell Ultra.
inline constexpr double kUsualExponentials = 16;
/// The same of `gpu`'s generation: Blackwell Ultra has 32. Source: NVIDIA, "Inside NVIDIA
/// Blackwell Ultra", 2025: 10.7 tera-exponentials per second, where Blackwell does 5 (recalled).
double exponentials_of_sm(const GpuSpec& gpu);

/// What Hopper does of its peak by Ampere's instructions (mma.sync), which take operands from
/// registers in any order: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU", 2024,
/// mean of formats (recalled).
inline constexpr double kHopperByMma = 0.629;

/// Arithmetic per second that tiles of products can use: the peak, but never more than the SMs do
/// at the clock that is stated. A tile runs on one SM, whose lanes and tensor cores its generation
/// fixes: a description with fewer SMs at the same peaks has no faster ones.
FlopsPerSecond usable_peak(const GpuSpec& gpu, Precision precision);

/// The stated peak of tensor cores / what its generation's SMs do at the stated clock, where the
/// GPU is held to three quarters or less of it (GeForce cards that add in FP32 to a half, H20 to a
/// quarter); 1 for all others.
double held_share(const GpuSpec& gpu, Precision precision);

/// Says that the stated peak is beyond what the SMs do; empty where it is not.
std::optional<std::string> note_on_peak(const GpuSpec& gpu, Precision precision);

/// What is left out of products on a GPU whose board power is not stated.
std::optional<std::string> note_on_watts(const GpuSpec& gpu);

}  // namespace tessera
