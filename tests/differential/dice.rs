//! Random choices from a seed. The same seed always results in the same choices.

/// A source of random choices: a pseudorandom generator, or the input of a fuzzer.
pub struct Dice {
    source: Source,
}

enum Source {
    /// The state of a SplitMix64 generator.
    Seed(u64),
    /// The unused bytes of a fuzzer's input. They are used from the end. When none is left, every random number is 0.
    #[allow(dead_code, reason = "for the fuzz target that includes this file")]
    Bytes(Vec<u8>),
}

impl Dice {
    /// Creates a source of random choices that depend only on `seed`.
    pub fn new(seed: u64) -> Self {
        Self { source: Source::Seed(seed) }
    }

    /// Creates a source of random choices that depend only on `bytes`, the input of a fuzzer.
    #[allow(dead_code, reason = "for the fuzz target that includes this file")]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { source: Source::Bytes(bytes.to_vec()) }
    }

    /// Returns a random number.
    pub fn number(&mut self) -> u64 {
        match &mut self.source {
            Source::Bytes(bytes) => u64::from(bytes.pop().unwrap_or_default()) * 0x0101_0101_0101_0101,
            Source::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        }
    }

    /// Returns a random number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    /// Returns true with a probability of `percent` out of 100.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// Returns a random element. Panics if there is none.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Returns a random element, or `None` if there is none.
    pub fn any<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }
}
