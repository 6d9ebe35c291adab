// LAPACK's routines as functions of one matrix, from the library that NumPy has loaded.
// May include: base.
// Invariant: matrices lie in columns without gaps; a result other than 0 is LAPACK's info.
#pragma once
#include <cstdint>

#include "base/dtype.h"

namespace clew::kernels::lapack {

template <class T> struct RealPart { using type = T; };
template <class C> struct RealPart<std::complex<C>> { using type = C; };
template <class T> using Real = typename RealPart<T>::type;
template <class T> using Complex = std::complex<Real<T>>;

// Looks the routines up in a shared library and what it depends on; false when one is missing.
bool load(const char* library);
bool loaded();
// Whether its matrix products are worth calling: it is OpenBLAS, not the reference's plain loops.
bool multiplies();

// Gives back what this thread keeps of a large workspace.
void trim_scratch();

// While one lives, the library computes with so many threads; with one where other processes have
// the processors, which its threads would wait for at every turn.
class Threads {
  int64_t began_ = 0, worked_ = 0;  // 0 unless there are several

 public:
  explicit Threads(int n);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

// A = P L U in place; pivots[i] is the number, from 1, of the row that row i was exchanged with.
template <class T> int getrf(int64_t m, int64_t n, T* a, int32_t* pivots);
// The inverse in place of the factors.
template <class T> int getri(int64_t n, T* lu, const int32_t* pivots);
// Hermitian A = L L^H, or U^H U, in place of the triangle that is read.
template <class T> int potrf(bool upper, int64_t n, T* a);
// The triangle of A^-1 in place of the factor.
template <class T> int potri(bool upper, int64_t n, T* a);
// b (m, n) becomes b op(a)^-1; op: 'N', 'T' or 'C'.
template <class T>
void trsm(bool upper, char op, bool unit, int64_t m, int64_t n, const T* a, T* b);
// c (m, n) becomes alpha op(a) op(b) + beta c; ops: 'N' or 'T'.
template <class T>
void gemm(char opa, char opb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc);
// Reflections of complex A = Q R below the diagonal, R above (of real ones: reflections.h).
template <class T> int geqrf(int64_t m, int64_t n, T* a, T* tau);
// The first n columns of the product of k reflections in place of them.
template <class T> int orgqr(int64_t m, int64_t n, int64_t k, T* a, const T* tau);
// c (m, n) becomes Q c or c Q, or the same with Q^H; a has m rows, or n.
template <class T>
int ormqr(bool left, bool adjoint, int64_t m, int64_t n, int64_t k, const T* a, const T* tau, T* c);
// Eigenvalues of a hermitian matrix, and its eigenvectors in its place.
template <class T> int syevd(bool vectors, bool upper, int64_t n, T* a, Real<T>* values);
// A real symmetric matrix (lower triangle) as Q S Q^T, of a tridiagonal S; a keeps the vectors of
// Q's reflections below the line beside the diagonal.
template <class T> int sytrd(int64_t n, T* a, T* diagonal, T* beside, T* tau);
// Eigenvalues of such an S in place of its diagonal, ascending, and its eigenvectors.
template <class T> int stedc(int64_t n, T* diagonal, T* beside, T* vectors);
// A real matrix as Q B P^T, of a bidiagonal B: upper where m >= n, else lower; a keeps the vectors
// of the reflections of Q in columns and of P in rows.
template <class T> int gebrd(int64_t m, int64_t n, T* a, T* diagonal, T* beside, T* tauq, T* taup);
// Singular values of such a B in place of its diagonal, descending, and its singular vectors.
template <class T>
int bdsdc(bool upper, int64_t n, T* diagonal, T* beside, T* u, int64_t ldu, T* vt, int64_t ldvt);
// Eigenvalues, and right eigenvectors unless null; a is destroyed.
template <class T> int geev(int64_t n, T* a, Complex<T>* values, Complex<T>* vectors);
// job 'A' (all vectors), 'S' (as many as there are values), 'N'; a is destroyed.
template <class T> int gesdd(char job, int64_t m, int64_t n, T* a, Real<T>* s, T* u, T* vt);
// Symmetric or hermitian A = L D L^T (lower triangle) in place.
template <class T> int sytrf(bool hermitian, int64_t n, T* a, int32_t* pivots);
template <class T>
int sytrs(bool hermitian, int64_t n, int64_t columns, const T* ld, const int32_t* pivots, T* b);
// Least squares; a is destroyed, b (max(m, n), columns) becomes the solution. What a driver does
// not tell is left as it is.
enum class Driver : uint8_t { gels, gelsy, gelsd, gelss };
template <class T>
int least_squares(Driver driver, int64_t m, int64_t n, int64_t columns, T* a, T* b, Real<T> rcond,
                  Real<T>* values, int64_t* rank);

}  // namespace clew::kernels::lapack
