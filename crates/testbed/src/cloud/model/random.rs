//! Where do ids and chance come from? From the seed alone, so that a run can be repeated exactly.

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// Two streams of one seed: switching a fault on must not change the ids of later instances.
#[derive(Debug, Clone)]
pub struct Randomness {
    ids: ChaCha8Rng,
    faults: ChaCha8Rng,
}

impl Randomness {
    pub fn from_seed(seed: u64) -> Self {
        let mut faults = ChaCha8Rng::seed_from_u64(seed);
        faults.set_stream(1);
        Self { ids: ChaCha8Rng::seed_from_u64(seed), faults }
    }

    /// Returns an id in EC2's long form: a prefix, a zero and 16 hexadecimal digits.
    pub fn resource_id(&mut self, prefix: &str) -> String {
        format!("{prefix}-0{:016x}", self.ids.next_u64())
    }

    pub fn request_id(&mut self) -> String {
        // Request ids come from the fault stream: read-only calls must not move the ids of launches.
        let high = self.faults.next_u64();
        let low = self.faults.next_u64();
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    pub fn number_below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.ids.next_u64() % bound }
    }

    /// Returns a number for a fault, without moving the ids of later launches.
    pub fn fault_below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.faults.next_u64() % bound }
    }

    /// Returns whether a fault of this probability strikes now.
    pub fn strikes(&mut self, probability: f64) -> bool {
        if probability >= 1.0 {
            return true;
        }
        // 53 bits fill a double exactly, so the comparison is the same on every machine.
        let roll = (self.faults.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        roll < probability
    }
}

/// Returns whether a text is an EC2 id: the prefix and 8 or 17 hexadecimal digits.
pub fn is_resource_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-')).is_some_and(|digits| {
        matches!(digits.len(), 8 | 17)
            && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}
