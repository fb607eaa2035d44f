//! Where does chance come from? From one seed, in a stream of its own for each user of it.
//!
//! A stream for each user keeps a change in one part from moving what all others draw.

use std::time::Duration;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// A seeded sequence of draws.
#[derive(Clone, Debug)]
pub struct Chance {
    numbers: ChaCha8Rng,
}

impl Chance {
    /// The stream of this name in the seed.
    #[must_use]
    pub fn stream(seed: u64, name: &str) -> Self {
        let mut numbers = ChaCha8Rng::seed_from_u64(seed);
        numbers.set_stream(fingerprint(name.as_bytes()));
        Self { numbers }
    }

    pub fn number(&mut self) -> u64 {
        self.numbers.next_u64()
    }

    /// At least 0 and less than 1.
    pub fn unit(&mut self) -> f64 {
        // 53 bits fill a double exactly, so it is the same on every machine.
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Less than `bound`; zero where that is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or_default()
    }

    /// At least `least` and at most `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    pub fn seconds(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least * 1000, most * 1000))
    }

    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    /// Whether something of this probability happens now.
    pub fn hits(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        let index = self.below(among.len() as u64);
        among.get(usize::try_from(index).unwrap_or_default())
    }
}

/// FNV-1a: the same text gives the same number on every machine and in every version.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
