// Plans of Fourier transforms, and which lines are transformed how.
// May include: base, kernels.
// Invariant: a plan is made once and kept as long as there is room; lines are one thread's each.
#include "kernels/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <list>
#include <mutex>
#include <numbers>
#include <type_traits>

#include "base/parallel.h"
#include "base/scratch.h"
#include "kernels/core/instruction_set.h"

namespace clew::kernels {

CLEW_IN_EACH_SET(extern const FftLoops<float> fft_float; extern const FftLoops<double> fft_double;)

namespace {

template <class T> const FftLoops<T>& loops() {
  return of_type<T>(CLEW_CHOSEN(fft_float), CLEW_CHOSEN(fft_double));
}

// e^(-2 pi i k / n), with the angle brought into the first eighth, where it is most precise.
template <class T> void root(int64_t k, int64_t n, T& re, T& im) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  k %= n;
  const bool lower = 2 * k > n;  // mirrored at the real axis
  if (lower) k = n - k;
  const bool left = 4 * k > n;  // mirrored at the imaginary one: k becomes n/2 - k
  // In units of 1 / 2n of a turn, so that halves stay whole.
  int64_t twice = 2 * k;
  if (left) twice = n - twice;
  const bool swapped = 4 * twice > n;  // beyond an eighth: sine and cosine change places
  const Wide angle = std::numbers::pi_v<Wide> *
                     static_cast<Wide>(swapped ? n - 2 * twice : 2 * twice) /
                     static_cast<Wide>(2 * n);
  Wide c = std::cos(angle), s = std::sin(angle);
  if (swapped) std::swap(c, s);
  re = static_cast<T>(left ? -c : c);
  im = static_cast<T>(lower ? s : -s);
}

constexpr int64_t long_from = 1 << 18;  // lines of so many pairs are done as matrices
constexpr int64_t greatest_prime = 31;  // what has a greater one is done by a convolution

// The radices of n, the greatest first; empty when a prime is too great.
std::vector<int> radices(int64_t n) {
  std::vector<int> all;
  while (n % 8 == 0 && n != 16) all.push_back(8), n /= 8;
  while (n % 4 == 0) all.push_back(4), n /= 4;
  for (int64_t p = 2; p <= greatest_prime; ++p) {
    while (n % p == 0) all.push_back(static_cast<int>(p)), n /= p;
  }
  if (n > 1) all.clear();
  return all;
}
bool is_smooth(int64_t n) { return n == 1 || !radices(n).empty(); }

// Calls f(k) for the places of a table of n roots, each of which costs a sine and a cosine.
template <class F> void each_root(int64_t n, F&& f) {
  parallel_for(n, grain_default / 16, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) f(k);
  });
}

template <class T> std::vector<FftStep> steps(int64_t n, std::vector<T>& factors) {
  std::vector<FftStep> made;
  int64_t before = 1;
  for (int r : radices(n)) {
    FftStep s{r, n / r, before, static_cast<int64_t>(factors.size()), 0};
    factors.resize(factors.size() + static_cast<size_t>(2 * (r - 1) * s.m));
    T* to = factors.data() + s.factors;
    each_root((r - 1) * s.m, [=](int64_t i) {
      root(i / (r - 1) * (i % (r - 1) + 1), n, to[2 * i], to[2 * i + 1]);
    });
    s.roots = static_cast<int64_t>(factors.size());
    for (int k = 0; r > 5 && r != 8 && k < r; ++k) {
      T re, im;
      root<T>(k, r, re, im);
      factors.push_back(re);
      factors.push_back(im);
    }
    made.push_back(s);
    before *= r;
    n /= r;
  }
  return made;
}

template <class T> std::shared_ptr<const FftPlan<T>> make(int64_t n) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->n = n;
  plan->half_re.resize(static_cast<size_t>(n / 2 + 1));
  plan->half_im.resize(static_cast<size_t>(n / 2 + 1));
  each_root(n / 2 + 1, [n, re = plan->half_re.data(), im = plan->half_im.data()](int64_t k) {
    root(k, 2 * n, re[k], im[k]);
  });
  if (is_smooth(n)) {
    constexpr int w = FftPlan<T>::width;
    plan->across = n % w == 0 && n >= w * w;
    if (plan->across) {
      const int64_t m = n / w;
      plan->inner = steps(m, plan->factors);
      const int64_t room = (m + w - 1) / w * w;
      plan->last_re.resize(static_cast<size_t>(room * w));
      plan->last_im.resize(static_cast<size_t>(room * w));
      each_root(m * w, [=, re = plan->last_re.data(), im = plan->last_im.data()](int64_t i) {
        const int64_t j = i / m, k = i % m, at = j * room + k;
        root(j * k, n, re[at], im[at]);
      });
    }
    plan->all = steps(n, plan->factors);
    if (n >= long_from) {
      int64_t rows = 1;
      for (int64_t r = 64; r * r <= n; ++r) {
        if (n % r == 0 && n / r % w == 0) rows = r;
      }
      if (rows > 1) {
        plan->rows = rows;
        plan->chirp.resize(static_cast<size_t>(2 * n));
        const int64_t columns = n / rows;
        each_root(n, [=, to = plan->chirp.data()](int64_t at) {
          root(at / columns * (at % columns), n, to[2 * at], to[2 * at + 1]);
        });
      }
    }
    return plan;
  }
  // The convolution with a chirp.
  int64_t size = 2 * n - 1;
  size = (size + 63) / 64 * 64;
  for (;; size += 64) {
    int64_t rest = size;
    for (int64_t p : {2, 3, 5}) {
      while (rest % p == 0) rest /= p;
    }
    if (rest == 1) break;
  }
  plan->longer = fft_plan<T>(size);
  plan->chirp.resize(static_cast<size_t>(2 * n));
  plan->filter.resize(static_cast<size_t>(2 * size));
  each_root(n, [&](int64_t k) {
    T re, im;
    const auto square =
        static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) %
                             static_cast<unsigned __int128>(2 * n));
    root(square, 2 * n, re, im);
    plan->chirp[static_cast<size_t>(2 * k)] = re;
    plan->chirp[static_cast<size_t>(2 * k + 1)] = im;
    for (int64_t at : {k, (size - k) % size}) {
      plan->filter[static_cast<size_t>(2 * at)] = re;
      plan->filter[static_cast<size_t>(2 * at + 1)] = -im;
    }
  });
  std::vector<T> scratch(static_cast<size_t>(fft_scratch(*plan->longer)));
  loops<T>().line(*plan->longer, plan->filter.data(), plan->filter.data(), false,
                  T(1) / static_cast<T>(size), scratch.data());
  end_if_stopped();
  return plan;
}

// The latest plans, as long as they have so many numbers together.
constexpr int64_t cached_numbers = 8 << 20;
template <class T> struct Cache {
  std::mutex lock;
  std::list<std::shared_ptr<const FftPlan<T>>> plans;
};
template <class T> Cache<T>& cache() {
  static Cache<T> one;
  return one;
}

LocalScratch scratch_numbers, line_numbers;

}  // namespace

template <class T> std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n) {
  Cache<T>& c = cache<T>();
  {
    std::lock_guard lock(c.lock);
    for (auto i = c.plans.begin(); i != c.plans.end(); ++i) {
      if ((*i)->n != n) continue;
      if (i != c.plans.begin()) c.plans.splice(c.plans.begin(), c.plans, i);
      return c.plans.front();
    }
  }
  auto made = make<T>(n);
  std::lock_guard lock(c.lock);
  c.plans.push_front(made);
  int64_t kept = 0;
  for (auto i = c.plans.begin(); i != c.plans.end();) {
    kept += 6 * (*i)->n;
    i = kept > cached_numbers && i != c.plans.begin() ? c.plans.erase(i) : std::next(i);
  }
  return made;
}

template <class T> int64_t fft_scratch(const FftPlan<T>& plan) {
  // Four planes of `width` lines. Lengths that go through a convolution are done line by line.
  if (plan.longer) return 2 * plan.longer->n + fft_scratch(*plan.longer) + 2 * plan.n;
  return 4 * FftPlan<T>::width * (plan.n + 16);
}

namespace {

// One long line as a matrix (rows, columns), whose columns and rows fit into caches.
template <class T>
void long_line(const FftPlan<T>& plan, const T* in, T* out, bool inverse, T scale) {
  const int64_t rows = plan.rows, columns = plan.n / rows;
  T* made = line_numbers.of<T>(2 * plan.n);
  fft(in, made, 1, rows, columns, inverse, scale);
  const T sign = inverse ? T(-1) : T(1);
  parallel_for(rows, std::max<int64_t>(1, grain_default / columns), [&](int64_t from, int64_t to) {
    for (int64_t i = 2 * from * columns; i < 2 * to * columns; i += 2) {
      const T c = plan.chirp[static_cast<size_t>(i)],
              s = sign * plan.chirp[static_cast<size_t>(i + 1)];
      const T re = made[i] * c - made[i + 1] * s;
      made[i + 1] = made[i] * s + made[i + 1] * c;
      made[i] = re;
    }
  });
  fft(made, made, rows, columns, 1, inverse, T(1));
  constexpr int64_t block = 16;
  parallel_for((columns + block - 1) / block, 4, [&](int64_t from, int64_t to) {
    for (int64_t j0 = from * block; j0 < std::min(to * block, columns); j0 += block) {
      for (int64_t i0 = 0; i0 < rows; i0 += block) {
        for (int64_t j = j0; j < std::min(j0 + block, columns); ++j) {
          for (int64_t i = i0; i < std::min(i0 + block, rows); ++i) {
            out[2 * (j * rows + i)] = made[2 * (i * columns + j)];
            out[2 * (j * rows + i) + 1] = made[2 * (i * columns + j) + 1];
          }
        }
      }
    }
  });
  line_numbers.trim(8);
}

}  // namespace

template <class T>
void fft(const T* in, T* out, int64_t outer, int64_t n, int64_t inner, bool inverse, T scale) {
  constexpr int w = FftPlan<T>::width;
  const auto plan = fft_plan<T>(n);
  const FftLoops<T>& run = loops<T>();
  if (plan->rows && inner == 1 && !in_parallel()) {
    for (int64_t i = 0; i < outer; ++i)
      long_line(*plan, in + 2 * i * n, out + 2 * i * n, inverse, scale);
    return;
  }
  const int64_t room = fft_scratch(*plan);
  const int64_t cost = n * (plan->longer ? 60 : 10);
  if (inner == 1 && (plan->across || plan->longer || outer < 4)) {
    parallel_for(outer, std::max<int64_t>(1, grain_default / cost), [&](int64_t from, int64_t to) {
      T* scratch = scratch_numbers.of<T>(room);
      for (int64_t i = from; i < to; ++i)
        run.line(*plan, in + 2 * i * n, out + 2 * i * n, inverse, scale, scratch);
      scratch_numbers.trim(8);
    });
    return;
  }
  // `width` lines at a time: neighbours along the inner dim, or consecutive lines.
  const int64_t blocks = inner == 1 ? (outer + w - 1) / w : (inner + w - 1) / w;
  const int64_t total = inner == 1 ? blocks : blocks * outer;
  parallel_for(
      total, std::max<int64_t>(1, grain_default / (cost * w)), [&](int64_t from, int64_t to) {
        T* scratch = scratch_numbers.of<T>(room);
        for (int64_t b = from; b < to; ++b) {
          if (inner == 1) {
            const int64_t at = 2 * b * w * n;
            run.lines(*plan, in + at, 1, n, out + at, 1, n,
                      static_cast<int>(std::min<int64_t>(w, outer - b * w)), inverse, scale,
                      scratch);
            continue;
          }
          const int64_t first = b % blocks * w, at = 2 * (b / blocks * n * inner + first);
          run.lines(*plan, in + at, inner, 1, out + at, inner, 1,
                    static_cast<int>(std::min<int64_t>(w, inner - first)), inverse, scale, scratch);
        }
        scratch_numbers.trim(8);
      });
}

namespace {

// How many lines of real numbers are transformed at once: as many as stand side by side, unless one
// fills the vectors by itself.
template <class T> int64_t at_once(const FftPlan<T>& plan, int64_t lines) {
  return plan.across || plan.longer || lines < 4 ? 1 : FftPlan<T>::width;
}
// `count` lines of pairs, `step` and `out_step` pairs apart.
template <class T>
void run_lines(const FftPlan<T>& plan, const T* in, int64_t step, T* out, int64_t out_step,
               int64_t count, bool inverse, T scale, T* scratch) {
  const FftLoops<T>& run = loops<T>();
  if (count == 1) return run.line(plan, in, out, inverse, scale, scratch);
  run.lines(plan, in, 1, step, out, 1, out_step, static_cast<int>(count), inverse, scale, scratch);
}

// some(first, count, scratch) for all lines, of `cost` each, `many` at once.
template <class T, class F>
void over_lines(int64_t lines, int64_t many, int64_t cost, int64_t room, F&& some) {
  parallel_for((lines + many - 1) / many, std::max<int64_t>(1, grain_default / (cost * many)),
               [&](int64_t from, int64_t to) {
                 T* scratch = scratch_numbers.of<T>(room);
                 for (int64_t i = from; i < to; ++i)
                   some(i * many, std::min(many, lines - i * many), scratch);
                 scratch_numbers.trim(8);
                 line_numbers.trim(8);
               });
}

}  // namespace

template <class T>
void fft_real(const T* in, T* out, int64_t lines, int64_t n, bool whole, bool inverse, T scale) {
  const int64_t half = n / 2, kept = whole ? n : half + 1;
  const bool even = n % 2 == 0;
  const auto plan = fft_plan<T>(even ? half : n);
  const FftLoops<T>& run = loops<T>();
  const int64_t room = fft_scratch(*plan), cost = n * (plan->longer ? 40 : 8);
  const int64_t many = at_once(*plan, lines);
  auto some = [&](int64_t first, int64_t count, T* scratch) {
    const T* x = in + first * n;
    T* y = out + 2 * first * kept;
    if (even) {
      // Pairs of neighbours as complex numbers; the result has room for one more.
      if (count > 1 && !plan->longer) {
        run.real_lines(*plan, x, half, y, kept, static_cast<int>(count), scale, scratch);
      } else {
        run_lines(*plan, x, half, y, kept, count, false, scale, scratch);
        for (int64_t l = 0; l < count; ++l) run.split(*plan, y + 2 * l * kept);
      }
    } else {
      T* line = line_numbers.of<T>(2 * n * count);
      for (int64_t j = 0; j < n * count; ++j) {
        line[2 * j] = x[j];
        line[2 * j + 1] = T(0);
      }
      run_lines(*plan, line, n, line, n, count, false, scale, scratch);
      for (int64_t l = 0; l < count; ++l)
        std::copy_n(line + 2 * l * n, 2 * (half + 1), y + 2 * l * kept);
    }
    for (int64_t l = 0; l < count; ++l, y += 2 * kept) {
      for (int64_t k = 1; whole && k < n - half; ++k) {
        y[2 * (n - k)] = y[2 * k];
        y[2 * (n - k) + 1] = -y[2 * k + 1];
      }
      // Of real numbers the inverse transform is the conjugate one.
      for (int64_t k = 0; inverse && k < kept; ++k) y[2 * k + 1] = -y[2 * k + 1];
    }
  };
  over_lines<T>(lines, many, cost, room, some);
}

template <class T> void fft_to_real(const T* in, T* out, int64_t lines, int64_t n, T scale) {
  const int64_t half = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = fft_plan<T>(even ? half : n);
  const FftLoops<T>& run = loops<T>();
  const int64_t room = fft_scratch(*plan), cost = n * (plan->longer ? 40 : 8);
  const int64_t many = at_once(*plan, lines), step = even ? half + 1 : n;
  auto some = [&](int64_t first, int64_t count, T* scratch) {
    const T* x = in + 2 * first * (half + 1);
    T *y = out + first * n, *line = line_numbers.of<T>(2 * step * count);
    for (int64_t l = 0; l < count; ++l) {
      T* to = line + 2 * l * step;
      std::copy_n(x + 2 * l * (half + 1), 2 * (half + 1), to);
      if (even) {
        run.join(*plan, to);
        continue;
      }
      to[1] = T(0);
      for (int64_t k = 1; k <= half; ++k) {
        to[2 * (n - k)] = to[2 * k];
        to[2 * (n - k) + 1] = -to[2 * k + 1];
      }
    }
    if (even) return run_lines(*plan, line, step, y, half, count, true, scale, scratch);
    run_lines(*plan, line, step, line, step, count, true, scale, scratch);
    for (int64_t j = 0; j < n * count; ++j) y[j] = line[2 * j];
  };
  over_lines<T>(lines, many, cost, room, some);
}

#define CLEW_INSTANTIATE(T)                                              \
  template std::shared_ptr<const FftPlan<T>> fft_plan<T>(int64_t);       \
  template int64_t fft_scratch(const FftPlan<T>&);                       \
  template void fft(const T*, T*, int64_t, int64_t, int64_t, bool, T);   \
  template void fft_real(const T*, T*, int64_t, int64_t, bool, bool, T); \
  template void fft_to_real(const T*, T*, int64_t, int64_t, T);
CLEW_INSTANTIATE(float)
CLEW_INSTANTIATE(double)
#undef CLEW_INSTANTIATE

}  // namespace clew::kernels
