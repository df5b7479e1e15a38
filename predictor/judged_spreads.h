#pragma once

/// What a prediction loses in certainty where nothing was measured that speaks of it: standard
/// deviations of log time, joined in quadrature. Judgements, each with its reason; spreads that
/// were measured are in the weights.
namespace tessera::judged {

// Kernels of any unit.

/// Per doubling of an input beyond the training data.
inline constexpr double kPerDoublingBeyond = 0.10;

// Products on tensor cores.

/// A GPU that was never timed: medians of bf16 products of 50 us and longer are 0.03 to 0.11 off on
/// A100 PCIe, B200 and L40S, which nothing was fitted to; three GPUs cannot validate more, so about
/// one and a half times the root of their mean square. With it (and power, below) 80 % intervals
/// hold 91 % of such calls on B200 and 70 % on L40S by their quantiles (decision 44).
inline constexpr double kUnseenGpu = 0.12;
/// Per generation between such a GPU and the one that speaks for it.
inline constexpr double kPerGeneration = 0.05;
/// Cards such as T4 (70 W), which throttle on long FP32 kernels.
inline constexpr double kLowPower = 0.25;
/// Another vendor's libraries and tensor units.
inline constexpr double kOtherVendor = 0.30;
/// bf16 and fp16 multiply at one rate; rows of both on one GPU come from different libraries.
inline constexpr double kOtherPrecision = 0.03;
/// Formats of other widths: the share of their own peak that 16-bit products reach. tf32 has twice
/// the bytes per multiply-add, fp8 also promotes partial sums on CUDA cores and scales the result.
inline constexpr double kTf32 = 0.15, kFp8 = 0.25;
/// Calls of 10 ms and longer of two sessions on one kind of card differ by 4 to 17 % on A100, by 6
/// to 24 % on H100; half of it either way.
inline constexpr double kSessionsUnderLoad = 0.06;
/// Orders of a gradient: data gradients took within 2 % of the forward order on A100 and B200,
/// weight gradients with their sums up to 3 % more or less than modelled.
inline constexpr double kOtherLayout = 0.05;
/// Only single products were timed.
inline constexpr double kBatched = 0.10;
/// Only sizes that are multiples of 32 were timed.
inline constexpr double kMisaligned = 0.30;
/// Groups of unequal size, beyond what tiles show.
inline constexpr double kUnequalGroups = 0.15;
/// Other algorithms and tensor layouts of convolutions.
inline constexpr double kConvolution = 0.25;
/// The same of kernels for groups; as wide as the FP32 model's spread beyond its data at 32 groups.
inline constexpr double kConvolutionGroups = 0.5;

// Kernels on CUDA cores.

/// Kinds that take the bandwidth of a class they resemble.
inline constexpr double kUnmeasuredKind = 0.2;
/// Experts of unequal size end at unequal times, which a batch of equal groups does not show.
inline constexpr double kUnequalFp32Groups = 0.2;
/// Kernels on 16-bit tensors, which were not fitted: on A100 residual adds of 50 us and longer lie
/// within 4 % of the FP32 tensors' rate, shorter ones are predicted up to a quarter too slow.
inline constexpr double kOtherFormat = 0.05, kOtherFormatShort = 0.15;
/// 16-bit products on the FP32 units: the arithmetic of FP32 products, half of their bytes.
inline constexpr double kOtherFormatProducts = 0.2;
/// Rows reduced in 16 bits do the FP32 arithmetic for half of the bytes.
inline constexpr double kOtherFormatRows = 0.15;

// Fused attention.

/// FlashAttention-2's ratio of backward to forward where it was measured, and where it stands in
/// for other kernels'.
inline constexpr double kBackward = 0.10, kOtherBackward = 0.20;
/// The same kernel in two builds on one GPU type (sglang, vllm on A100) differs by a seventh.
inline constexpr double kBuild = 0.07;
/// Head sizes that no call of an implementation had; those measured differ by about as much.
inline constexpr double kUnseenHead = 0.15;

}  // namespace tessera::judged
