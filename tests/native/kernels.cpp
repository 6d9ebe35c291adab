// Kernels without Python, for ThreadSanitizer: `make tsan` builds and runs them.
// May include: base, kernels.
// Invariant: it ends with 0 only where equal calls gave equal bits, alone and beside other callers.
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/generator.h"
#include "base/parallel.h"
#include "kernels/sequence/attention.h"
#include "kernels/indexing/bags.h"
#include "kernels/sort/distinct.h"
#include "kernels/fft/fft.h"
#include "kernels/matmul/gemm.h"
#include "kernels/indexing/index.h"
#include "kernels/norm/norm.h"
#include "kernels/random/random.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/scan.h"
#include "kernels/norm/softmax.h"
#include "kernels/sort/sort.h"

namespace {

using namespace clew;
using namespace clew::kernels;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::exit(1);
}

// A contiguous array that a kernel reads or writes.
template <class T> struct Array {
  std::vector<T> elements;
  std::vector<int64_t> sizes, strides;
  DType dtype;

  Array(DType type, std::vector<int64_t> of) : sizes(std::move(of)), dtype(type) {
    int64_t n = 1;
    strides.resize(sizes.size());
    for (size_t i = sizes.size(); i-- > 0; n *= sizes[i]) strides[i] = n;
    elements.resize(static_cast<size_t>(n));
  }
  NdView view() {
    return {reinterpret_cast<char*>(elements.data()), sizes.data(), strides.data(),
            static_cast<int>(sizes.size()), dtype};
  }
  NdView transposed() {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
    return view();
  }
  char* bytes() { return reinterpret_cast<char*>(elements.data()); }
};
using Floats = Array<float>;
using Longs = Array<int64_t>;

Floats floats(std::vector<int64_t> sizes) { return Floats(DType::Float32, std::move(sizes)); }
Longs longs(std::vector<int64_t> sizes) { return Longs(DType::Int64, std::move(sizes)); }

Floats numbers(std::vector<int64_t> sizes) {
  Floats made = floats(std::move(sizes));
  Generator generator(7);
  for (float& x : made.elements) x = Generator::to_float(generator.next32()) - 0.5f;
  return made;
}
Longs below(int64_t limit, std::vector<int64_t> sizes) {
  Longs made = longs(std::move(sizes));
  Generator generator(8);
  for (int64_t& x : made.elements) x = generator.next32() % limit;
  return made;
}

// What the kernels wrote, one behind the other.
struct Written {
  std::vector<char> bytes;
  template <class T> void add(const std::vector<T>& part) {
    const auto* at = reinterpret_cast<const char*>(part.data());
    bytes.insert(bytes.end(), at, at + part.size() * sizeof(T));
  }
};

void products(Written& out) {
  for (int64_t m : {1, 17, 64, 300}) {
    const int64_t k = 129, n = 150;
    Floats a = numbers({m, k}), b = numbers({k, n}), c = floats({m, n});
    Gemm g{DType::Float32, m, n, k, a.bytes(), k, 1, b.bytes(), n, 1, c.bytes(), n, 1};
    gemm(g);
    out.add(c.elements);
    g.b_rs = 1;
    g.b_cs = k;
    gemm(g);
    out.add(c.elements);
  }
  Floats a = numbers({40, 30, 20}), b = numbers({40, 20, 30}), c = floats({40, 30, 30});
  const Gemm g{DType::Float32, 30, 30, 20, a.bytes(), 20, 1, b.bytes(), 30, 1, c.bytes(), 30, 1};
  gemm_batched(g, {{40}, {600}, {600}, {900}});
  out.add(c.elements);
}

void orders(Written& out) {
  for (const auto& sizes : {std::vector<int64_t>{1, 60000}, {300, 200}, {20000, 3}}) {
    Floats x = numbers(sizes), values = floats(sizes);
    Longs places = longs(sizes);
    sort(values.view(), places.view(), x.view(), 1, true);
    out.add(places.elements);
    sort(values.view(), places.view(), x.view(), 0, false);
    out.add(places.elements);
    cumsum(values.view(), x.view(), 1, false);
    out.add(values.elements);
    cumextremum(values.view(), places.view(), x.view(), 0, true);
    out.add(places.elements);
    softmax(values.view(), x.view(), 1, true);
    out.add(values.elements);
    softmax(values.view(), x.view(), 0, false);
    out.add(values.elements);
    Floats best = floats({sizes[0], 2});
    Longs where = longs({sizes[0], 2});
    topk(best.view(), where.view(), x.view(), 1, true, true);
    out.add(where.elements);
  }
}

void sums(Written& out) {
  Floats x = numbers({250, 400});
  for (const auto& sizes : {std::vector<int64_t>{1, 1}, {250, 1}, {1, 400}}) {
    Floats y = floats(sizes), z = floats(sizes);
    Longs places = longs(sizes);
    for (auto* reduce : {reduce_sum, reduce_prod, reduce_amax, reduce_logsumexp}) {
      reduce(y.view(), x.view());
      out.add(y.elements);
    }
    const NdView of = y.view();
    reduce_arg(&of, places.view(), x.view(), false);
    out.add(places.elements);
  }
  Floats wide = floats({400, 250});
  copy(wide.view(), x.transposed());
  out.add(wide.elements);
  accumulate(wide.view(), x.view());
  out.add(wide.elements);
}

void places(Written& out) {
  Floats table = numbers({500, 40});
  Longs index = below(500, {900, 40});
  Floats taken = floats({900, 40});
  require(gather(taken.view(), table.view(), index.view(), 0), "indices are in range");
  out.add(taken.elements);
  require(scatter(table.view(), taken.view(), index.view(), 0, Combine::Add, nullptr),
          "indices are in range");
  out.add(table.elements);
  index.elements[35000] = 500;
  require(!gather(taken.view(), table.view(), index.view(), 0), "an index is out of range");
  Longs few = below(1000, {200000});
  const NonzeroCounts counts = count_nonzero(few.view());
  std::vector<int64_t> found(static_cast<size_t>(counts.back()));
  nonzero_flat(few.view(), counts, found.data());
  out.add(found);
  std::vector<char> room(distinct_room(few.view(), true));
  const auto distinct = distinct_elements(few.view(), true, room.data());
  std::vector<int64_t> values(static_cast<size_t>(distinct->count())), at(few.elements.size()),
      times(values.size());
  distinct->write(values.data(), at.data(), times.data());
  require(values.size() == 1000, "all numbers below 1000 are there");
  out.add(at);
  out.add(times);
  std::vector<int64_t> seen(1000);
  count_values(seen.data(), 1000, few.elements.data(), 200000);
  require(seen == times, "two ways to count");
  Longs rows = below(500, {3000}), offsets = longs({301});
  for (size_t i = 0; i < 301; ++i) offsets.elements[i] = static_cast<int64_t>(i) * 10;
  const Bags bags{rows.elements.data(), offsets.elements.data(), 300, nullptr, true};
  Floats bagged = floats({300, 40});
  bag_sums(bagged.view(), table.view(), bags);
  out.add(bagged.elements);
  bag_spread(table.view(), bagged.view(), bags);
  out.add(table.elements);
}

void draws(Written& out) {
  Generator generator(3);
  Floats x = floats({100000});
  random_uniform(x.view(), 0, 1, generator);
  out.add(x.elements);
  random_normal(x.view(), 0, 1, generator);
  out.add(x.elements);
  random_exponential(x.view(), 2, generator);
  out.add(x.elements);
  Longs order = longs({5000});
  random_permutation(order.view(), generator);
  out.add(order.elements);
}

void layers(Written& out) {
  Floats x = numbers({64, 8, 16, 20}), y = floats(x.sizes), weight = numbers({128});
  Floats mean = floats({64, 8}), rstd = floats({64, 8}), dw = floats({128}), db = floats({128});
  const GroupShape shape{64, 8, 16, 20};
  group_norm(y.elements.data(), mean.elements.data(), rstd.elements.data(), x.elements.data(),
             weight.elements.data(), weight.elements.data(), shape, 1e-5);
  out.add(y.elements);
  group_norm_backward(y.elements.data(), dw.elements.data(), db.elements.data(), x.elements.data(),
                      x.elements.data(), mean.elements.data(), rstd.elements.data(),
                      weight.elements.data(), shape);
  out.add(y.elements);
  out.add(dw.elements);

  Floats q = numbers({2, 4, 150, 16}), result = floats(q.sizes);
  Array<double> logsum(DType::Float64, {2, 4, 150});
  const AttentionOperand operand{q.bytes(), {9600, 2400, 16, 1}};
  const AttentionShape s{DType::Float32, 2,       4,       4,       150, 150, 16, 16, 0.25, true,
                         operand,        operand, operand, AttentionOperand{}, false};
  attention(s, {result.bytes(), {9600, 2400, 16, 1}}, logsum.bytes());
  out.add(result.elements);
  Floats dq = floats(q.sizes), dk = floats(q.sizes), dv = floats(q.sizes);
  attention_backward(s, {{result.bytes(), {9600, 2400, 16, 1}},
                         operand,
                         logsum.bytes(),
                         {dq.bytes(), {9600, 2400, 16, 1}},
                         {dk.bytes(), {9600, 2400, 16, 1}},
                         {dv.bytes(), {9600, 2400, 16, 1}}});
  out.add(dq.elements);
  out.add(dk.elements);
  out.add(dv.elements);

  for (int64_t n : {8, 97, 360, 40000}) {
    Floats line = numbers({3, n, 2, 2});
    fft(line.elements.data(), line.elements.data(), 3, n, 2, false, 1.0f);
    out.add(line.elements);
  }
}

std::vector<char> everything() {
  Written out;
  for (auto* part : {products, orders, sums, places, draws, layers}) part(out);
  return std::move(out.bytes);
}

}  // namespace

int main() {
  for (int threads : {1, 3}) {
    clew::set_num_threads(threads);
    const std::vector<char> expected = everything();
    for (int k = 0; k < 2; ++k) require(everything() == expected, "equal calls, equal bits");
    std::vector<std::thread> callers;
    for (int k = 0; k < 3; ++k)
      callers.emplace_back(
          [&] { require(everything() == expected, "equal bits beside other callers"); });
    for (auto& caller : callers) caller.join();
  }
  std::puts("ok");
}
