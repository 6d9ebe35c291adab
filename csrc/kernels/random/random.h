// Fills with random numbers of several distributions, permutations, sampling, and dropout's
// masked copy.
// May include: base, kernels.
// Invariant: numbers are drawn one after another in the destination's memory order, whatever the
// thread count.
#pragma once
#include "base/generator.h"
#include "base/ndview.h"

namespace clew::kernels {

void random_uniform(const NdView& dst, double from, double to, Generator& g);
void random_normal(const NdView& dst, double mean, double std, Generator& g);
// All of one floating dtype and equal sizes.
void random_normal(const NdView& dst, const NdView& mean, const NdView& std, Generator& g);
// low + [0, range); range 0 stands for 2^64.
// `wide` draws 64 bits a number.
void random_integers(const NdView& dst, int64_t low, uint64_t range, bool wide, Generator& g);
void random_bernoulli(const NdView& dst, double p, Generator& g);
// dst and p have equal sizes and dtypes; fails when a probability is outside [0, 1].
void random_bernoulli(const NdView& dst, const NdView& p, Generator& g);
void random_exponential(const NdView& dst, double rate, Generator& g);
void random_geometric(const NdView& dst, double p, Generator& g);
void random_cauchy(const NdView& dst, double median, double sigma, Generator& g);
void random_log_normal(const NdView& dst, double mean, double std, Generator& g);
void random_poisson(const NdView& dst, const NdView& rate, Generator& g);
// Logarithms of gamma numbers of rate 1; all float64.
void random_log_gamma(const NdView& dst, const NdView& concentration, Generator& g);
// How many of `count` trials succeed; all float64.
void random_binomial(const NdView& dst, const NdView& count, const NdView& p, Generator& g);
// A permutation of 0 .. n-1 into a contiguous one-dimensional dst.
void random_permutation(const NdView& dst, Generator& g);
// dst: int64 [rows, samples], contiguous; weights: floating [rows, categories], contiguous. Drawing
// without replacement needs one random number for each weight; with by_columns, the numbers of a
// column are drawn one after another.
void random_multinomial(const NdView& dst, const NdView& weights, bool replacement, bool by_columns,
                        Generator& g);

// out = mask ? in * scale + shift : dropped. Equal sizes; mask is bool and may have stride 0.
void masked_affine(const NdView& out, const NdView& in, const NdView& mask, double scale,
                   double shift, double dropped);
// The same with a mask that is drawn here: `keep` is the chance to be true. For contiguous float32
// the mask may be empty: it is not kept.
void random_masked_affine(const NdView& out, const NdView& mask, const NdView& in, double keep,
                          double scale, double shift, double dropped, Generator& g);

}  // namespace clew::kernels
