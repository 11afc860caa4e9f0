//! Random choices from a seed: the same seed always gives the same tree.

/// Whoever makes choices. A program of the same choices runs on the bytes of a fuzzer.
pub struct Dice {
    source: Source,
}

enum Source {
    /// The state of a SplitMix64.
    Seed(u64),
    /// The remaining bytes of a fuzzer, read from the end. After that, all choices are the first one.
    #[allow(dead_code, reason = "for the fuzz target that includes this file")]
    Bytes(Vec<u8>),
}

impl Dice {
    /// Choices that follow from a number.
    pub fn new(seed: u64) -> Self {
        Self { source: Source::Seed(seed) }
    }

    /// Choices that follow from bytes.
    #[allow(dead_code, reason = "for the fuzz target that includes this file")]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { source: Source::Bytes(bytes.to_vec()) }
    }

    /// Any number.
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

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    /// Returns whether something happens that does so `percent` times out of 100.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    /// One of them.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// One of them, if there is any.
    pub fn any<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        if of.is_empty() { None } else { of.get(self.below(of.len())) }
    }
}
