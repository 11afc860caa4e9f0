// memcmp and bcmp for x86-64 with musl, whose own compares one byte at a time.
//
// Up to 15 bytes, two values that may overlap are compared. Longer ranges are compared in steps of 16 bytes; the last step may
// compare bytes again.
//
// Tests: tests/native.rs

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD(type, from) ({ type value; __builtin_memcpy(&value, from, sizeof(value)); value; })

static inline int order(uint64_t left, uint64_t right) { return (left > right) - (left < right); }

// 8 bytes as a number that is ordered like the bytes.
static inline uint64_t eight(const uint8_t *from) { return __builtin_bswap64(LOAD(uint64_t, from)); }

// The first and the last 4 of 4 to 8 bytes, as a number that is ordered like the bytes.
static inline uint64_t ends(const uint8_t *from, size_t n) {
  return (uint64_t)__builtin_bswap32(LOAD(uint32_t, from)) << 32 | __builtin_bswap32(LOAD(uint32_t, from + n - 4));
}

int memcmp(const void *left, const void *right, size_t n) {
  const uint8_t *l = left, *r = right;
  if (n >= 16) {
    for (size_t at = 0; at < n; at += 16) {
      if (at > n - 16) at = n - 16;
      __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(l + at)), _mm_loadu_si128((const __m128i *)(r + at)));
      unsigned different = ~(unsigned)_mm_movemask_epi8(equal) & 0xffff;
      if (different) {
        at += (size_t)__builtin_ctz(different);
        return l[at] - r[at];
      }
    }
    return 0;
  }
  if (n >= 8) {
    int first = order(eight(l), eight(r));
    return first ? first : order(eight(l + n - 8), eight(r + n - 8));
  }
  if (n >= 4) return order(ends(l, n), ends(r, n));
  for (size_t at = 0; at < n; at++) {
    if (l[at] != r[at]) return l[at] - r[at];
  }
  return 0;
}

int bcmp(const void *left, const void *right, size_t n) { return memcmp(left, right, n); }
