// LAPACK's routines: where they are found, how they are called.
// May include: base; <dlfcn.h>, <unistd.h>, <ctime>.
// Invariant: nothing is called before all routines have been found.
#include "kernels/core/lapack.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <type_traits>

#include "base/scratch.h"

namespace clew::kernels::lapack {

namespace {

enum Routine : uint8_t {
  r_getrf,
  r_getri,
  r_potrf,
  r_potri,
  r_trsm,
  r_geqrf,
  r_orgqr,
  r_ormqr,
  r_syevd,
  r_sytrd,
  r_stedc,
  r_gebrd,
  r_bdsdc,
  r_geev,
  r_gesdd,
  r_sytrf,
  r_hetrf,
  r_sytrs,
  r_hetrs,
  r_gels,
  r_gelsy,
  r_gelsd,
  r_gelss,
  r_gemm,
  routines
};
constexpr const char* real_names[routines] = {"getrf", "getri", "potrf", "potri", "trsm",  "geqrf",
                                              "orgqr", "ormqr", "syevd", "sytrd", "stedc", "gebrd",
                                              "bdsdc", "geev",  "gesdd", "sytrf", "sytrf", "sytrs",
                                              "sytrs", "gels",  "gelsy", "gelsd", "gelss", "gemm"};
constexpr const char* complex_names[routines] = {
    "getrf", "getri", "potrf", "potri", "trsm",  "geqrf", "ungqr", "unmqr",
    "heevd", "hetrd", "stedc", "gebrd", "bdsqr", "geev",  "gesdd", "sytrf",
    "hetrf", "sytrs", "hetrs", "gels",  "gelsy", "gelsd", "gelss", "gemm"};

struct Library {
  std::array<std::array<void*, routines>, 4> found = {};
  void (*set_threads)(int) = nullptr;
  int (*threads)() = nullptr;
  bool wide = false;  // its integers have 64 bits
  bool loaded = false;
};
Library library;

// How builds of the library decorate names; "64" stands in those whose integers have 64 bits.
struct Decoration {
  const char *before, *after;
};
constexpr Decoration decorations[] = {{"scipy_", "_64_"},       {"", "_64_"}, {"scipy_", "_"},
                                      {"", "$NEWLAPACK$ILP64"}, {"", "_"},    {"", "$NEWLAPACK"}};

bool find_all(void* in, const Decoration& d, Library& to) {
  for (int type = 0; type < 4; ++type) {
    for (int r = 0; r < routines; ++r) {
      const char* name = type < 2 ? real_names[r] : complex_names[r];
      const std::string symbol = std::string(d.before) + "sdcz"[type] + name + d.after;
      void* at = dlsym(in, symbol.c_str());
      if (!at) return false;
      to.found[static_cast<size_t>(type)][static_cast<size_t>(r)] = at;
    }
  }
  to.wide = std::strstr(d.after, "64") != nullptr;
  return true;
}

// Arguments are pointers to 64-bit integers. A routine with 32-bit integers reads the lower half,
// which comes first on little-endian processors.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
using Int = int64_t;
int narrowed(Int info) { return static_cast<int>(static_cast<int32_t>(info)); }

template <class T> constexpr size_t type_index() {
  if constexpr (std::is_same_v<T, float>) return 0;
  if constexpr (std::is_same_v<T, double>) return 1;
  if constexpr (std::is_same_v<T, c64>) return 2;
  return 3;
}
// The lengths of texts follow the arguments, as Fortran compilers pass them.
template <class T, class... A> void call(Routine r, A*... args) {
  constexpr int texts = ((std::is_same_v<std::remove_const_t<A>, char> ? 1 : 0) + ... + 0);
  void* f = library.found[type_index<T>()][r];
  if constexpr (texts == 0)
    reinterpret_cast<void (*)(A * ...)>(f)(args...);
  else if constexpr (texts == 1)
    reinterpret_cast<void (*)(A * ..., size_t)>(f)(args..., 1);
  else if constexpr (texts == 2)
    reinterpret_cast<void (*)(A * ..., size_t, size_t)>(f)(args..., 1, 1);
  else
    reinterpret_cast<void (*)(A * ..., size_t, size_t, size_t, size_t)>(f)(args..., 1, 1, 1, 1);
}

LocalScratch scratch, scratch_real, scratch_integers, scratch_pivots;

template <class T> Int size_of(T asked) {
  if constexpr (is_complex_v<T>)
    return static_cast<Int>(asked.real());
  else
    return static_cast<Int>(asked);
}
// Small matrices are done without blocks of columns, and with the least workspace.
constexpr Int without_blocks = 32;
// Runs a routine with the workspace that it asks for: f(work, lwork). `n`: the size that decides.
template <class T, class F> void with_work(Int n, Int least, F&& f) {
  if (n <= without_blocks) {
    least = std::max<Int>(least, 1);
    return f(scratch.of<T>(least), &least);
  }
  T asked{};
  Int query = -1;
  f(&asked, &query);
  // Single precision may have rounded it down.
  Int size = std::max(least, size_of(asked) + (sizeof(Real<T>) == 4 ? size_of(asked) >> 22 : 0));
  f(scratch.of<T>(size), &size);
}
Int* integers(int64_t n) { return scratch_integers.of<Int>(std::max<int64_t>(n, 1)); }

// Pivots as the library wants them.
template <class F> void with_pivots(int64_t n, int32_t* pivots, F&& f) {
  if (!library.wide) return f(reinterpret_cast<Int*>(pivots));
  Int* own = scratch_pivots.of<Int>(std::max<int64_t>(n, 1));
  f(own);
  for (int64_t i = 0; i < n; ++i) pivots[i] = static_cast<int32_t>(own[i]);
}
template <class F> void with_given(int64_t n, const int32_t* pivots, F&& f) {
  if (!library.wide) return f(reinterpret_cast<Int*>(const_cast<int32_t*>(pivots)));
  Int* own = scratch_pivots.of<Int>(std::max<int64_t>(n, 1));
  std::copy_n(pivots, n, own);
  f(own);
}

int64_t nanoseconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}
// Whether more threads run on this machine, with `n` of ours, than it has processors.
bool crowded(int n) {
  std::FILE* file = std::fopen("/proc/loadavg", "r");
  if (!file) return false;
  int running = 0;
  const bool known = std::fscanf(file, "%*f %*f %*f %d", &running) == 1;
  std::fclose(file);
  return known && running - 1 + n > sysconf(_SC_NPROCESSORS_ONLN);
}
// A call that was on the processor for less than two thirds of its time had neighbours; for the
// next while one thread does it.
constexpr int64_t judged_from = 2'000'000, away_least = 1'000'000'000;
std::atomic<int64_t> away_until{0};

std::mutex threads_lock;
int threads_users = 0, threads_before = 0;

}  // namespace

bool load(const char* path) {
  void* in = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!in) return false;
  Library made;
  for (const Decoration& d : decorations) {
    if (!find_all(in, d, made)) continue;
    const std::string before(d.before), after = made.wide ? "64_" : "";
    for (const char* name : {"openblas_set_num_threads", "openblas_get_num_threads"}) {
      const std::string symbol = before + name + after;
      void* at = dlsym(in, symbol.c_str());
      if (std::strstr(name, "set"))
        made.set_threads = reinterpret_cast<void (*)(int)>(at);
      else
        made.threads = reinterpret_cast<int (*)()>(at);
    }
    made.loaded = true;
    library = made;
    return true;
  }
  return false;
}
bool loaded() { return library.loaded; }
bool multiplies() { return library.loaded && library.set_threads && library.threads; }

void trim_scratch() {
  for (const LocalScratch* s : {&scratch, &scratch_real, &scratch_integers, &scratch_pivots})
    s->trim(1);
}

Threads::Threads(int n) {
  if (!library.set_threads || !library.threads) return;
  if (n > 1) {
    began_ = nanoseconds(CLOCK_MONOTONIC);
    worked_ = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    if (began_ < away_until.load(std::memory_order_relaxed) || crowded(n)) {
      began_ = 0;
      n = 1;
    }
  }
  std::lock_guard lock(threads_lock);
  if (threads_users++ == 0) threads_before = library.threads();
  library.set_threads(n);
}
Threads::~Threads() {
  if (!library.set_threads || !library.threads) return;
  if (began_) {
    const int64_t end = nanoseconds(CLOCK_MONOTONIC), took = end - began_;
    const int64_t worked = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - worked_;
    if (took > judged_from && worked < took / 3 * 2)
      away_until.store(end + std::max(away_least, 10 * took), std::memory_order_relaxed);
  }
  std::lock_guard lock(threads_lock);
  if (--threads_users == 0) library.set_threads(threads_before);
}

template <class T> int getrf(int64_t m, int64_t n, T* a, int32_t* pivots) {
  Int info = 0, lda = std::max<Int>(m, 1);
  with_pivots(std::min(m, n), pivots, [&](Int* p) { call<T>(r_getrf, &m, &n, a, &lda, p, &info); });
  return narrowed(info);
}
template <class T> int getri(int64_t n, T* lu, const int32_t* pivots) {
  Int info = 0, lda = std::max<Int>(n, 1);
  with_given(n, pivots, [&](Int* p) {
    with_work<T>(
        n, n, [&](T* work, Int* lwork) { call<T>(r_getri, &n, lu, &lda, p, work, lwork, &info); });
  });
  return narrowed(info);
}
template <class T> int potrf(bool upper, int64_t n, T* a) {
  Int info = 0, lda = std::max<Int>(n, 1);
  call<T>(r_potrf, upper ? "U" : "L", &n, a, &lda, &info);
  return narrowed(info);
}
template <class T> int potri(bool upper, int64_t n, T* a) {
  Int info = 0, lda = std::max<Int>(n, 1);
  call<T>(r_potri, upper ? "U" : "L", &n, a, &lda, &info);
  return narrowed(info);
}
template <class T>
void trsm(bool upper, char op, bool unit, int64_t m, int64_t n, const T* a, T* b) {
  const T one = 1;
  Int lda = std::max<Int>(n, 1), ldb = std::max<Int>(m, 1);
  call<T>(r_trsm, "R", upper ? "U" : "L", &op, unit ? "U" : "N", &m, &n, &one, a, &lda, b, &ldb);
}
template <class T>
void gemm(char opa, char opb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  call<T>(r_gemm, &opa, &opb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}
template <class T> int geqrf(int64_t m, int64_t n, T* a, T* tau) {
  Int info = 0, lda = std::max<Int>(m, 1);
  with_work<T>(std::min(m, n), n, [&](T* work, Int* lwork) {
    call<T>(r_geqrf, &m, &n, a, &lda, tau, work, lwork, &info);
  });
  return narrowed(info);
}
template <class T> int orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  Int info = 0, lda = std::max<Int>(m, 1);
  with_work<T>(n, n, [&](T* work, Int* lwork) {
    call<T>(r_orgqr, &m, &n, &k, a, &lda, tau, work, lwork, &info);
  });
  return narrowed(info);
}
template <class T>
int ormqr(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, const T* tau,
          T* c) {
  Int info = 0, lda = std::max<Int>(left ? m : n, 1), ldc = std::max<Int>(m, 1);
  const char* op = !adjoint ? "N" : is_complex_v<T> ? "C" : "T";
  with_work<T>(k, left ? n : m, [&](T* work, Int* lwork) {
    call<T>(r_ormqr, left ? "L" : "R", op, &m, &n, &k, a, &lda, tau, c, &ldc, work, lwork, &info);
  });
  return narrowed(info);
}
template <class T> int syevd(bool vectors, bool upper, int64_t n, T* a, Real<T>* values) {
  Int info = 0, lda = std::max<Int>(n, 1);
  const char *job = vectors ? "V" : "N", *part = upper ? "U" : "L";
  Int liwork = vectors ? 3 + 5 * n : 1;
  Int* iwork = integers(liwork);
  if constexpr (is_complex_v<T>) {
    Int lrwork = vectors ? 1 + 5 * n + 2 * n * n : n + 1;
    auto* rwork = scratch_real.of<Real<T>>(lrwork);
    with_work<T>(n, vectors ? 2 * n + n * n : n + 1, [&](T* work, Int* lwork) {
      call<T>(r_syevd, job, part, &n, a, &lda, values, work, lwork, rwork, &lrwork, iwork, &liwork,
              &info);
    });
  } else {
    with_work<T>(n, vectors ? 1 + 6 * n + 2 * n * n : 2 * n + 1, [&](T* work, Int* lwork) {
      call<T>(r_syevd, job, part, &n, a, &lda, values, work, lwork, iwork, &liwork, &info);
    });
  }
  return narrowed(info);
}
template <class T> int sytrd(int64_t n, T* a, T* diagonal, T* beside, T* tau) {
  Int info = 0, lda = std::max<Int>(n, 1);
  with_work<T>(n, n, [&](T* work, Int* lwork) {
    call<T>(r_sytrd, "L", &n, a, &lda, diagonal, beside, tau, work, lwork, &info);
  });
  return narrowed(info);
}
template <class T> int stedc(int64_t n, T* diagonal, T* beside, T* vectors) {
  Int info = 0, ldz = std::max<Int>(n, 1), liwork = 3 + 5 * n;
  Int* iwork = integers(liwork);
  with_work<T>(n, 1 + 4 * n + n * n, [&](T* work, Int* lwork) {
    call<T>(r_stedc, "I", &n, diagonal, beside, vectors, &ldz, work, lwork, iwork, &liwork, &info);
  });
  return narrowed(info);
}
template <class T> int gebrd(int64_t m, int64_t n, T* a, T* diagonal, T* beside, T* tauq, T* taup) {
  Int info = 0, lda = std::max<Int>(m, 1);
  with_work<T>(std::max(m, n), std::max(m, n), [&](T* work, Int* lwork) {
    call<T>(r_gebrd, &m, &n, a, &lda, diagonal, beside, tauq, taup, work, lwork, &info);
  });
  return narrowed(info);
}
template <class T>
int bdsdc(bool upper, int64_t n, T* diagonal, T* beside, T* u, int64_t ldu, T* vt, int64_t ldvt) {
  Int info = 0, *iwork = integers(8 * n);
  T none{};
  call<T>(r_bdsdc, upper ? "U" : "L", "I", &n, diagonal, beside, u, &ldu, vt, &ldvt, &none, iwork,
          scratch.of<T>(3 * n * n + 4 * n + 1), iwork, &info);
  return narrowed(info);
}
template <class T> int geev(int64_t n, T* a, Complex<T>* values, Complex<T>* vectors) {
  Int info = 0, lda = std::max<Int>(n, 1), one = 1;
  const char* job = vectors ? "V" : "N";
  Int* ldv = vectors ? &lda : &one;
  T none{};
  if constexpr (is_complex_v<T>) {
    auto* rwork = scratch_real.of<Real<T>>(2 * n + 1);
    T* to = vectors ? vectors : &none;
    with_work<T>(n, 2 * n + 1, [&](T* work, Int* lwork) {
      call<T>(r_geev, "N", job, &n, a, &lda, values, &none, &one, to, ldv, work, lwork, rwork,
              &info);
    });
  } else {
    // Real and imaginary parts, and columns: of a pair, the real part and the imaginary one.
    T *real = scratch_real.of<T>(2 * n + (vectors ? n * n : 0) + 1), *imag = real + n;
    T* v = vectors ? imag + n : &none;
    with_work<T>(n, 4 * n + 1, [&](T* work, Int* lwork) {
      call<T>(r_geev, "N", job, &n, a, &lda, real, imag, &none, &one, v, ldv, work, lwork, &info);
    });
    for (int64_t j = 0; j < n; ++j) values[j] = {real[j], imag[j]};
    for (int64_t j = 0; vectors && j < n; ++j) {
      const T *x = v + j * n, *y = x + n;
      Complex<T>* to = vectors + j * n;
      if (imag[j] == 0 || j + 1 == n) {
        for (int64_t i = 0; i < n; ++i) to[i] = x[i];
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        to[i] = {x[i], y[i]};
        to[n + i] = {x[i], -y[i]};
      }
      ++j;
    }
  }
  return narrowed(info);
}
template <class T> int gesdd(char job, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* vt) {
  Int info = 0, lda = std::max<Int>(m, 1), least = std::min(m, n), most = std::max(m, n);
  Int ldu = lda, ldvt = std::max<Int>(job == 'S' ? least : n, 1);
  Int* iwork = integers(8 * least);
  if constexpr (is_complex_v<T>) {
    const Int size = job == 'N' ? 7 * least
                                : std::max(5 * least * least + 7 * least,
                                           2 * most * least + 2 * least * least + least);
    auto* rwork = scratch_real.of<Real<T>>(size + 1);
    with_work<T>(most, job == 'N' ? 2 * least + most : 2 * least * (least + 2) + most,
                 [&](T* work, Int* lwork) {
                   call<T>(r_gesdd, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, lwork,
                           rwork, iwork, &info);
                 });
  } else {
    with_work<T>(most, job == 'N' ? 10 * least + most : 4 * least * (least + 2) + most,
                 [&](T* work, Int* lwork) {
                   call<T>(r_gesdd, &job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, lwork,
                           iwork, &info);
                 });
  }
  return narrowed(info);
}
template <class T> int sytrf(bool hermitian, int64_t n, T* a, int32_t* pivots) {
  Int info = 0, lda = std::max<Int>(n, 1);
  with_pivots(n, pivots, [&](Int* p) {
    with_work<T>(n, n, [&](T* work, Int* lwork) {
      call<T>(hermitian ? r_hetrf : r_sytrf, "L", &n, a, &lda, p, work, lwork, &info);
    });
  });
  return narrowed(info);
}
template <class T>
int sytrs(bool hermitian, int64_t n, int64_t columns, const T* ld, const int32_t* pivots, T* b) {
  Int info = 0, lda = std::max<Int>(n, 1);
  with_given(n, pivots, [&](Int* p) {
    call<T>(hermitian ? r_hetrs : r_sytrs, "L", &n, &columns, ld, &lda, p, b, &lda, &info);
  });
  return narrowed(info);
}
template <class T>
int least_squares(Driver driver, int64_t m, int64_t n, int64_t columns, T* a, T* b, Real<T> rcond,
                  Real<T>* values, int64_t* rank) {
  using R = Real<T>;
  Int info = 0, lda = std::max<Int>(m, 1), ldb = std::max<Int>(std::max(m, n), 1), found = 0;
  const Int least = std::min(m, n), most = std::max(m, n);
  if (driver == Driver::gels) {
    with_work<T>(most, least + std::max(least, columns), [&](T* work, Int* lwork) {
      call<T>(r_gels, "N", &m, &n, &columns, a, &lda, b, &ldb, work, lwork, &info);
    });
    return narrowed(info);
  }
  if (driver == Driver::gelsy) {
    Int* order = integers(n);
    std::fill_n(order, n, 0);
    [[maybe_unused]] R* rwork = scratch_real.of<R>(2 * n + 1);
    with_work<T>(most, std::max(least + 3 * n + 1, 2 * least + columns), [&](T* work, Int* lwork) {
      if constexpr (is_complex_v<T>)
        call<T>(r_gelsy, &m, &n, &columns, a, &lda, b, &ldb, order, &rcond, &found, work, lwork,
                rwork, &info);
      else
        call<T>(r_gelsy, &m, &n, &columns, a, &lda, b, &ldb, order, &rcond, &found, work, lwork,
                &info);
    });
  } else if (driver == Driver::gelss) {
    [[maybe_unused]] R* rwork = scratch_real.of<R>(5 * least + 1);
    with_work<T>(most, 3 * least + std::max({2 * least, most, columns}), [&](T* work, Int* lwork) {
      if constexpr (is_complex_v<T>)
        call<T>(r_gelss, &m, &n, &columns, a, &lda, b, &ldb, values, &rcond, &found, work, lwork,
                rwork, &info);
      else
        call<T>(r_gelss, &m, &n, &columns, a, &lda, b, &ldb, values, &rcond, &found, work, lwork,
                &info);
    });
  } else {
    // The sizes of the real and the integer workspace come with the answer to a query.
    T asked{};
    R real_size = 0;
    Int query = -1, integer_size = 0;
    auto run = [&](T* work, Int* lwork, R* rwork, Int* iwork) {
      if constexpr (is_complex_v<T>)
        call<T>(r_gelsd, &m, &n, &columns, a, &lda, b, &ldb, values, &rcond, &found, work, lwork,
                rwork, iwork, &info);
      else
        call<T>(r_gelsd, &m, &n, &columns, a, &lda, b, &ldb, values, &rcond, &found, work, lwork,
                iwork, &info);
    };
    run(&asked, &query, &real_size, &integer_size);
    Int size = size_of(asked) + 1;
    run(scratch.of<T>(size), &size, scratch_real.of<R>(static_cast<Int>(real_size) + 1),
        integers(integer_size + 1));
  }
  *rank = narrowed(found);
  return narrowed(info);
}

#define CLEW_INSTANTIATE(T)                                                                 \
  template int getrf(int64_t, int64_t, T*, int32_t*);                                       \
  template int getri(int64_t, T*, const int32_t*);                                          \
  template int potrf(bool, int64_t, T*);                                                    \
  template int potri(bool, int64_t, T*);                                                    \
  template void trsm(bool, char, bool, int64_t, int64_t, const T*, T*);                     \
  template void gemm(char, char, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*, \
                     int64_t, T, T*, int64_t);                                              \
  template int syevd(bool, bool, int64_t, T*, Real<T>*);                                    \
  template int geev(int64_t, T*, Complex<T>*, Complex<T>*);                                 \
  template int gesdd(char, int64_t, int64_t, T*, Real<T>*, T*, T*);                         \
  template int sytrf(bool, int64_t, T*, int32_t*);                                          \
  template int sytrs(bool, int64_t, int64_t, const T*, const int32_t*, T*);                 \
  template int least_squares(Driver, int64_t, int64_t, int64_t, T*, T*, Real<T>, Real<T>*,  \
                             int64_t*);
CLEW_INSTANTIATE(float)
CLEW_INSTANTIATE(double)
CLEW_INSTANTIATE(c64)
CLEW_INSTANTIATE(c128)
#undef CLEW_INSTANTIATE
// Reflections of real matrices are kernels/linalg/reflections.cpp's.
template int geqrf(int64_t, int64_t, c64*, c64*);
template int geqrf(int64_t, int64_t, c128*, c128*);
template int orgqr(int64_t, int64_t, int64_t, c64*, const c64*);
template int orgqr(int64_t, int64_t, int64_t, c128*, const c128*);
template int ormqr(bool, bool, int64_t, int64_t, int64_t, const c64*, const c64*, c64*);
template int ormqr(bool, bool, int64_t, int64_t, int64_t, const c128*, const c128*, c128*);
template int sytrd(int64_t, float*, float*, float*, float*);
template int sytrd(int64_t, double*, double*, double*, double*);
template int stedc(int64_t, float*, float*, float*);
template int stedc(int64_t, double*, double*, double*);
template int gebrd(int64_t, int64_t, float*, float*, float*, float*, float*);
template int gebrd(int64_t, int64_t, double*, double*, double*, double*, double*);
template int bdsdc(bool, int64_t, float*, float*, float*, int64_t, float*, int64_t);
template int bdsdc(bool, int64_t, double*, double*, double*, int64_t, double*, int64_t);

}  // namespace clew::kernels::lapack
