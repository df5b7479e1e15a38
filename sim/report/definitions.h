#pragma once

#include <string_view>

namespace tessera::definitions {

/// What the reported ratios mean, in the words that are printed beside them.
constexpr std::string_view kInterval =
    "where the true step time lies with 80 % probability, from the errors of kernel predictions on "
    "GPUs that were left out of training (zero-shot) or measured, 15 % of communication and host, "
    "and what sources of measurements differ in";
constexpr std::string_view kMfu =
    "model FLOPs utilization: FLOPs of matrix products, convolutions and fused attention (half of "
    "it where causal) without recomputation / (step time x GPUs x dense peak of the precision in "
    "which most of them are done)";
constexpr std::string_view kHfu =
    "hardware FLOPs utilization: as MFU, with the FLOPs that are executed, recomputation included";
constexpr std::string_view kBubbleFraction =
    "share of the step in which a GPU runs no kernel because other pipeline stages are still at "
    "work, mean over GPUs; a message on its way counts as exposed communication";
constexpr std::string_view kExposedCommunication =
    "time in which a GPU runs no kernel and waits for a collective or message, from joining it to "
    "its end, without the bubble, mean over GPUs";
constexpr std::string_view kExposedCopies =
    "time in which a GPU runs no kernel and waits for copies between its memory and the host's "
    "(offloading, swapping, memory pressure), mean over GPUs; no communication between GPUs";
constexpr std::string_view kWinograd =
    "of these FLOPs are of fp32 convolutions with 3x3 windows at stride 1. They count as direct "
    "products; the library runs Winograd's algorithm where that is faster, which multiplies up to "
    "4 times less often, so more than 100 % of the peak can be right";
constexpr std::string_view kOtherPrecisions =
    "of these FLOPs are done in other precisions, whose peak is another one";
constexpr std::string_view kKernelKinds =
    "kernels on streams of their own, and of the host, run beside others: all kinds together take "
    "longer than the step";
constexpr std::string_view kBreakdown =
    "what the compute stream of a GPU does, mean over GPUs; adds up to the step time";
constexpr std::string_view kHost =
    "time in which a GPU runs no kernel because the host has not launched it yet";
constexpr std::string_view kPeakMemory =
    "highest memory in use on the fullest GPU: parameters, gradients, optimizer states, "
    "activations, work buffers";
constexpr std::string_view kEnergy =
    "of one step of the whole job: boards of the GPUs by what they do (idle, memory, products, "
    "waiting for each other; at the clock that power_limit leaves), the nodes' host_power where it "
    "is described and switch_power of the fabric, all times pue for the facility; watts of a node "
    "and of a rack (the job's nodes in it) without pue, peaks as means over 1/256 of the step; "
    "approximate for GPUs whose idle_power and busy_power are not described";
constexpr std::string_view kFits =
    "what the allocator must hold (reserved: its segments, given back where the GPU has no room "
    "for "
    "another), the CUDA context and NCCL's buffers together are no more than the GPU has, or than "
    "memory.limit or the budget of a plan leaves of it";

}  // namespace tessera::definitions
