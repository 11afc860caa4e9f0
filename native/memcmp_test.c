// Compares fast_memcmp and fast_bcmp with a loop over bytes, for all small sizes, alignments and places of a difference.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int fast_memcmp(const void *left, const void *right, size_t n);
int fast_bcmp(const void *left, const void *right, size_t n);

#define SIZE 512

static uint8_t left[SIZE], right[SIZE];

static int sign(int result) { return (result > 0) - (result < 0); }

// Returns whether comparing `n` bytes gives what a loop gives.
static int is_right(const uint8_t *l, const uint8_t *r, size_t n) {
  int expected = 0;
  for (size_t at = 0; at < n && !expected; at++) expected = sign(l[at] - r[at]);
  if (sign(fast_memcmp(l, r, n)) == expected && !fast_bcmp(l, r, n) == !expected) return 1;
  printf("comparing %zu bytes is wrong\n", n);
  return 0;
}

int main(void) {
  static const uint8_t values[][2] = {{0, 255}, {255, 0}, {127, 128}, {1, 2}};
  unsigned tried = 0;
  for (size_t at = 0; at < SIZE; at++) left[at] = (uint8_t)(at * 7 + at / 5);
  for (size_t n = 0; n <= 130; n++) {
    for (size_t begin = 0; begin < 36; begin += 5) {
      uint8_t *l = left + 40 + begin, *r = right + 40;
      // The bytes around the ranges differ, and must not be compared.
      for (size_t at = 0; at < SIZE; at++) right[at] = 99;
      for (size_t at = 0; at < n; at++) r[at] = l[at];
      if (!is_right(l, r, n)) return 1;
      for (size_t at = 0; at < n; at++) {
        uint8_t before = l[at];
        for (size_t value = 0; value < sizeof(values) / sizeof(*values); value++, tried++) {
          l[at] = values[value][0];
          r[at] = values[value][1];
          // Later differences have no effect.
          if (at + 1 < n) r[n - 1] = (uint8_t)(l[n - 1] + (value % 2 ? 1 : 255));
          if (!is_right(l, r, n)) return 1;
          if (at + 1 < n) r[n - 1] = l[n - 1];
          if (!is_right(l, r, n)) return 1;
        }
        l[at] = r[at] = before;
      }
    }
  }
  printf("%u comparisons\n", tried);
  return 0;
}
